"""Productivity, content, identity, data pipelines, devices and everything else that is sold as a service."""

from __future__ import annotations

from typing import Final

from commonplace.redact.catalogue.formats import Format, rows

FORMATS: Final[tuple[Format, ...]] = rows("""
notion_token secret_ ntn_ | A{40,64}
linear_key lin_api_ lin_oauth_ lin_wh_ | A{30,80}
airtable_token pat | A{14}\\.[0-9a-f]{56,72}
airtable_key key | A{14}(?![A-Za-z0-9_\\-.])
figma_token figd_ figu_ figuh_ figoh_ figor_ figo_ | W{30,80}
typeform_token tfp_ | [A-Za-z0-9_.\\-]{30,80}
hubspot_token pat-na1- pat-eu1- pat-na2- pat-ap1- | G{32,40}
hubspot_developer_key eu1- na1- na2- | G{32,40}
okta_token 00 | W{40}(?![A-Za-z0-9_\\-])
contentful_token CFPAT- | W{36,64}
mapbox_token sk.eyJ pk.eyJ tk.eyJ | !A{40,200}\\.W{16,30}
calcom_key cal_live_ cal_test_ cal_ | W{24,64}
adobe_secret p8e- s8e- | W{24,64}
frameio_token fio-u- fio-s- | W{50,80}
authress_key sc_ ext_ scauth_ authress_ | L{4,32}\\.[a-z0-9]{4,6}\\.acc[_-][a-z0-9-]{8,34}\\.[A-Za-z0-9+/_=-]{24,140}
stytch_secret secret-live- secret-test- project-live- | W{30,80}={0,2}
workos_key sk_ | [A-Za-z0-9]{60,120}
clerk_key sk_live_ sk_test_ | A{30,80}
persona_key persona_production_ persona_sandbox_ | G{36}
onfido_token api_live. api_live_ api_sandbox. api_live_us. api_live_ca. | D{30,80}
permit_key permit_key_ | A{60,120}
unkey_key unkey_ | A{20,64}
dbt_token dbtc_ dbts_ dbtu_ | W{28,80}
prefect_key pnu_ pnb_ | A{30,48}
hex_token hxtp_ hxtw_ | H{80,120}
metabase_key mb_ | B{40,60}={0,2}
seam_key seam_ | A{10,24}_A{20,40}
ttn_key NNSXS. | U{30,48}\\.U{40,60}
adafruit_key aio_ | A{26,32}(?![A-Za-z0-9])
keeper_token US: EU: AU: CA: JP: | W{43}(?![A-Za-z0-9_\\-])
riot_key RGAPI- | G{36}
apify_token apify_api_ apify_ | A{28,48}
ship24_key apik_ | A{24,48}
retool_token retool_ | A{16,64}
tally_key tly- | A{24,48}
wix_key IST. | D{80,2000}
zoho_token 1000. | H{32}\\.H{32}
quickbooks_token AB1 AB0 | A{45,60}(?![A-Za-z0-9])
salesforce_refresh 5Aep | [A-Za-z0-9._!]{70,140}
clickup_token pk_ | [0-9]{5,12}_[A-Z0-9]{28,36}
sanity_token sk | [A-Za-z0-9]{76,180}(?![A-Za-z0-9])
prismic_token MC5 | W{40,120}
shortcut_token sct_ct_ sct_rw_ sct_ro_ sct_ | W{30,80}
gitguardian_token ggtt- ggt_ | A{30,80}
settlemint_token sm_aat_ sm_pat_ sm_sat_ | A{14,40}
block_protocol_key b10ck5. | H{28,48}\\.G{36}
builder_key bpk- | H{28,40}
canva_secret cnvca | W{40,70}
box_token 1! | W{60,200}
samsara_token samsara_api_ | A{24,40}
n8n_key n8n_api_ | A{30,80}
trigger_dev_key tr_dev_ tr_prod_ tr_stg_ tr_pat_ | A{18,64}
inngest_key signkey-prod- signkey-test- signkey-branch- evtkey- | H{40,80}
svix_key testsk_ | D{24,64}
liveblocks_key sk_dev_ sk_prod_ sk_localdev | W{30,100}
bitwarden_access_token 0. | G{36}\\.A{20,40}:[A-Za-z0-9+/=]{20,30}
""")
