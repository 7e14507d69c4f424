"""Formats that show even when they are glued to a word: `fix-ghp_…`, `a_AKIA…`, `backup.sk-proj-…`, `ghp_…_old`.

Inside of a word a prefix alone says little: `disk-`, `risk_live_` and `configd_` end as prefixes do. So a row stands
here only when prefix and shape together are no name, and its shape is the documented one, not a shorter one.
What is judged for randomness is a group of the shape, or else as much of it as its first number says, so that a tail of
words (`-old`, `.txt`) changes nothing.
"""

from __future__ import annotations

from typing import Final

from commonplace.redact.catalogue.formats import Format, rows

ANYWHERE: Final[tuple[Format, ...]] = rows("""
github_token ghp_ gho_ ghu_ ghs_ ghr_ | A{36,255}
github_installation_token ghs_ | D{60,800}
github_fine_grained_token github_pat_ | A{22}_A{40,240}
gitlab_token glpat- gldt- glptt- glft- glsoat- glagent- gloas- glimt- glffct- glcbt- glrt- glrtr- glwt- | W{20}D{0,300}
gitlab_runner_registration GR1348941 | W{20,40}
atlassian_token ATATT3 ATCTT3 | [A-Za-z0-9_\\-=]{60,400}
circleci_token CCIPAT_ CCIPRJ_ | A{20,24}_H{40}
buildkite_token bkua_ bkaj_ bkct_ bkpt_ bkpat_ bkar_ | H{40}(?![A-Za-z0-9])
buildkite_token bkua_ bkaj_ bkct_ bkpt_ bkpat_ bkar_ | L{36,80}
pypi_token pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBp | W{80,1000}
docker_token dckr_pat_ dckr_oat_ | W{24,64}
slack_token xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxe- xoxe.xoxp- xoxe.xoxb- | (?:N{1,14}-){1,3}(A{20,256})
slack_token xoxp- xoxa- xoxs- | (?:N{8,14}-){3}([0-9a-f]{32})(?![A-Za-z0-9])
slack_cookie xoxd- | [A-Za-z0-9%+/=\\-]{40,400}
aws_access_key_id AKIA ASIA ABIA ACCA | U{16}(?![A-Za-z0-9])
aws_session_token IQoJb3JpZ2lu FwoGZXIvYXdz | B{60,2000}={0,2}
google_api_key AIza | W{35}(?![A-Za-z0-9])
google_oauth_secret GOCSPX- | W{24,40}
google_access_token ya29. | D{36,2000}
anthropic_key sk-ant-api03- sk-ant-admin01- sk-ant-oat01- sk-ant-ort01- sk-ant-sid01- sk-ant-sid02- | W{60,300}
openrouter_key sk-or-v1- | H{64}(?![A-Za-z0-9])
perplexity_key pplx- | A{48,64}
nvidia_key nvapi- | W{48,120}
together_key tgp_v1_ | W{33,128}
wandb_key wandb_v1_ | W{33,160}
langsmith_key lsv2_pt_ lsv2_sk_ | [0-9a-f]{32}_[0-9a-f]{10}
digitalocean_token dop_v1_ doo_v1_ dor_v1_ | H{64}(?![A-Za-z0-9])
vault_token hvs. hvb. hvr. | W{24,400}
tailscale_key tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook- | A{8,24}-(A{24,64})
heroku_token HRKU- | W{58,80}
planetscale_token pscale_tkn_ pscale_pw_ pscale_oauth_ pscale_app_secret_ | D{36,80}
docker_swarm_token SWMTKN-1- | L{50}-L{25}(?![A-Za-z0-9])
brevo_key xkeysib- xsmtpsib- | H{64}-A{16}(?![A-Za-z0-9])
mailersend_token mlsn. | H{64}(?![A-Za-z0-9])
sentry_org_token sntrys_ | !eyJB{60,500}={0,2}(?:_B{20,80})?
sentry_user_token sntryu_ sntrya_ sntryi_ | H{48,80}(?![A-Za-z0-9])
newrelic_key NRAK- NRII- NRIQ- NRRA- NRAA- NRBR- NRSP- | W{27,50}
grafana_service_token glsa_ | A{32}_H{8}(?![A-Za-z0-9])
dynatrace_token dt0c01. dt0s01. dt0s02. dt0s03. dt0s04. dt0s06. dt0s08. dt0s16. | A{24}\\.(A{64})
honeycomb_key hcaik_ hcalk_ hcamk_ hcxik_ hcxlk_ hcbik_ hcaok_ | L{33,80}
stripe_webhook_secret whsec_ | B{32,100}={0,2}
square_token sq0atp- sq0csp- | W{22,64}
razorpay_key rzp_live_ rzp_test_ | A{14,32}(?![A-Za-z0-9])
flutterwave_key FLWSECK_TEST- FLWSECK- FLWSECK_LIVE- | H{32}-X(?![A-Za-z0-9])
shopify_token shpat_ shpca_ shppa_ shpss_ shptka_ shpua_ shprt_ shpit_ | H{32}(?![A-Za-z0-9])
postman_key PMAK- PMAT- | H{24}-H{34}(?![A-Za-z0-9])
contentful_token CFPAT- | W{43,64}
riot_key RGAPI- | G{36}(?![A-Za-z0-9])
age_secret_key AGE-SECRET-KEY-1 | U{58}(?![A-Za-z0-9])
jwt eyJhbGciOi eyJ0eXAiOi eyJraWQiOi | !W{12,4000}\\.eyJW{12,8000}\\.W{20,2000}
base64_private_key LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk LS0tLS1CRUdJTiBQUklWQVRFIEtFWS | B{60,60000}={0,2}
base64_openssh_key LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ | B{60,60000}={0,2}
base64_ec_key LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS | B{60,60000}={0,2}
openssh_key_body b3BlbnNzaC1rZXktdjE | B{60,60000}={0,2}
""")
"""These are taken right behind a letter or a digit too."""

APART: Final[tuple[Format, ...]] = rows("""
openai_key sk-proj- sk-svcacct- sk-admin- sk-service- sk-None- | W{40,300}
openrouter_key sk-or-v1- | A{28,128}
huggingface_token hf_ | A{34,40}(?![A-Za-z0-9])
groq_key gsk_ | A{52}(?![A-Za-z0-9])
xai_key xai- | A{80}(?![A-Za-z0-9])
replicate_token r8_ | A{37}(?![A-Za-z0-9])
pinecone_key pcsk_ | W{36,128}
tavily_key tvly- tvly-dev- tvly-prod- | W{24,64}
langfuse_key sk-lf- | G{36}(?![A-Za-z0-9])
gemini_key AQ.Ab | W{36,200}
npm_token npm_ | A{36}(?![A-Za-z0-9])
rubygems_key rubygems_ | H{48}(?![A-Za-z0-9])
bitbucket_app_password ATBB | A{28,64}(?![A-Za-z0-9])
databricks_token dapi dkea dose | H{32}(?:-\\d)?(?![A-Za-z0-9])
google_hmac_key GOOG1E | U{21,61}(?![A-Za-z0-9])
alibaba_access_key LTAI5t | A{14,24}(?![A-Za-z0-9])
tencent_secret_id AKID | A{32}(?![A-Za-z0-9])
netlify_token nfp_ nfc_ nfo_ nfu_ nfb_ | A{36,64}(?![A-Za-z0-9])
vercel_token vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_ | W{24,100}
cloudflare_token cfut_ cfat_ | W{36,100}
supabase_token sbp_ | H{40}(?![A-Za-z0-9])
supabase_token sb_secret_ sbp_oauth_ | W{24,80}
neon_key napi_ | A{48,128}
doppler_token dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said. | (?:[a-z0-9_\\-]{2,35}\\.)?(A{40,44})(?!A{1})
onepassword_service_account ops_eyJ | B{60,2000}={0,2}
slack_app_token xapp- | 1-U{9,13}-N{9,15}-(H{64})
sendgrid_key SG. | W{22}\\.W{43}
onesignal_key os_v2_app_ os_v2_org_ | L{80,120}
grafana_cloud_token glc_ | eyJB{40,500}={0,2}
posthog_key phx_ | A{43,64}
stripe_key sk_live_ sk_test_ rk_live_ rk_test_ | A{24,255}
paystack_key sk_live_ sk_test_ | H{40}(?![A-Za-z0-9])
xendit_key xnd_production_ xnd_development_ | A{24,100}
mercadopago_token APP_USR- | N{12,20}-N{4,8}-([0-9a-f]{32})-N{4,12}(?![A-Za-z0-9])
easypost_key EZAK EZTK | A{54,64}(?![A-Za-z0-9])
linear_key lin_api_ lin_oauth_ lin_wh_ | A{36,80}
notion_token ntn_ | A{46,64}
figma_token figd_ | W{40,80}
hubspot_token pat-na1- pat-eu1- pat-na2- pat-ap1- | G{36}(?![A-Za-z0-9])
wallet_extended_key xprv yprv zprv tprv | [1-9A-HJ-NP-Za-km-z]{107,108}(?![A-Za-z0-9])
nostr_secret_key nsec1 | [02-9ac-hj-np-z]{58}(?![A-Za-z0-9])
""")
"""These are taken behind `-`, `_` and `.` only, because words end as their prefixes begin."""
