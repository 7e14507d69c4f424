"""Clouds, hosting platforms, databases as a service, secret stores and networks."""

from __future__ import annotations

from typing import Final

from commonplace.redact.catalogue.formats import Format, rows

FORMATS: Final[tuple[Format, ...]] = rows("""
aws_access_key_id AKIA ASIA ABIA ACCA | !U{16}(?![A-Za-z0-9])
aws_bedrock_key ABSK bedrock-api-key- | B{60,400}={0,2}
aws_session_token IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz AQoDYXdz | !B{40,2000}={0,2}
aws_mws_token amzn.mws. | !G{36}
amazon_client_secret amzn1.oa2-cs.v1. | H{32,80}
google_api_key AIza | W{35}(?![A-Za-z0-9_\\-])
google_oauth_secret GOCSPX- | W{20,40}
google_access_token ya29. ya29.a0 | D{30,2000}
google_hmac_key GOOG1E GOOG | U{18,61}(?![A-Za-z0-9])
alibaba_access_key LTAI LTAI5t | A{12,24}(?![A-Za-z0-9])
tencent_secret_id AKID | A{32}(?![A-Za-z0-9])
volcengine_access_key AKLT AKTP | A{40,60}={0,2}
baidu_access_key ALTAK ALTAK- | A{20,32}(?![A-Za-z0-9])
digitalocean_token dop_v1_ doo_v1_ dor_v1_ | H{40,80}
yandex_key AQVN | W{32,48}
yandex_oauth y0_ y1_ y2_ y3_ y4_ | W{40,80}
yandex_iam_token t1. | [A-Za-z0-9_\\-]{20,}={0,2}\\.[A-Za-z0-9_\\-]{60,}={0,2}
yandex_static_key YCAJ YCP YCN YCO YCM | W{20,40}(?![A-Za-z0-9_\\-])
scaleway_access_key SCW | U{17}(?![A-Za-z0-9])
flyio_token fo1_ fm1a_ fm1r_ fm2_ | B{40,2000}={0,2}
heroku_token HRKU- | W{36,80}
vercel_token vcp_ vci_ vca_ vcr_ vck_ vercel_ vercel_blob_rw_ | W{20,100}
netlify_token nfp_ nfc_ nfo_ nfu_ nfb_ | A{30,64}
cloudflare_origin_ca v1.0- | H{20,32}-H{100,200}
cloudflare_token cfut_ cfat_ cfk_ | W{30,100}
render_key rnd_ | A{20,64}
supabase_token sbp_ sbp_oauth_ sb_secret_ sbp_v0_ | W{20,80}
planetscale_token pscale_tkn_ pscale_pw_ pscale_oauth_ pscale_app_secret_ | D{30,80}
neon_key napi_ | A{40,128}
databricks_token dapi dkea dose | H{32}(?:-\\d{1,2})?(?![A-Za-z0-9])
mongodb_atlas_secret mdb_sa_sk_ | W{30,80}
doppler_token dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said. | [A-Za-z0-9_.\\-]{30,100}
vault_token hvs. hvb. hvr. | W{20,400}
vault_legacy_token s. b. | A{24}(?![A-Za-z0-9_.(])
pulumi_token pul- | H{32,64}
infisical_token st. | [0-9a-fA-F\\-]{20,40}\\.[0-9a-f]{24,80}(?:\\.[0-9a-f]{24,80})?
onepassword_service_account ops_eyJ | !B{60,2000}={0,2}
onepassword_secret_key A3- | [A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}
cockroach_key CCDB1_ | A{20,32}_A{30,64}
aiven_password AVNS_ | W{16,40}
aiven_token aivenv1 | B{60,400}={0,2}
clickhouse_key 4b1d | A{38}(?![A-Za-z0-9])
xata_key xau_ | A{28,64}
fauna_key fnA | W{32,60}(?![A-Za-z0-9])
deno_token ddp_ ddo_ ddw_ ddt_ | A{30,64}
tailscale_key tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook- tskey- | W{20,100}
docker_swarm_token SWMTKN-1- | L{40,60}-L{20,30}
k3s_token K10 | H{60,70}::[a-z]{3,20}:[A-Za-z0-9]{8,80}
openshift_token sha256~ | W{40,48}
stackhawk_key hawk. | W{16,24}\\.W{16,24}
defined_networking_key dnkey- | L{20,32}-L{40,60}
harness_key pat. sat. | W{20,24}\\.A{20,28}\\.A{16,24}
scalingo_token tk-us- | W{40,60}
backblaze_key K000 K001 K002 K003 K004 K005 | B{27}(?![A-Za-z0-9])
tigris_key tsec_ tid_ | A{24,80}
porkbun_key sk1_ pk1_ | H{60,70}
dnsimple_token dnsimple_u_ dnsimple_a_ dnsimple_o_ | A{20,64}
confluent_secret cflt | B{50,70}={0,2}
appwrite_key standard_ | [0-9a-f]{100,300}
netbird_token nbp_ | A{30,48}
""")
