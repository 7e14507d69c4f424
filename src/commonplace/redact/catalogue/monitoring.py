"""Logs, metrics, errors, incidents, feature flags and analytics."""

from __future__ import annotations

from typing import Final

from commonplace.redact.catalogue.formats import Format, rows

FORMATS: Final[tuple[Format, ...]] = rows("""
sentry_org_token sntrys_ | !B{30,500}={0,2}(?:_B{20,80})?
sentry_user_token sntryu_ sntrya_ sntryi_ | H{40,80}
newrelic_key NRAK- NRII- NRIQ- NRRA- NRAA- NRBR- NRSP- | W{24,50}
newrelic_browser_key NRJS- | H{16,40}
newrelic_license eu01xx us01xx | H{24,40}(?:NRAL|FFFF)?
grafana_service_token glsa_ | A{24,48}_H{6,12}
grafana_cloud_token glc_ | B{30,500}={0,2}
grafana_api_key eyJrIjoi | !B{40,500}={0,2}
dynatrace_token dt0c01. dt0s01. dt0s02. dt0s03. dt0s04. dt0s06. dt0s08. dt0s16. | A{8,32}(?:-U{4,12})?\\.A{40,80}
honeycomb_key hcaik_ hcalk_ hcamk_ hcxik_ hcxlk_ hcbik_ hcaok_ | L{28,80}
launchdarkly_key sdk- api- mob- | [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}
posthog_key phx_ phs_ pha_ phr_ | A{36,64}
axiom_token xaat- xapt- xait- | G{32,40}
coralogix_key cxtp_ cxup_ cxmk_ | A{24,48}
rootly_token rootly_ | H{40,80}
firehydrant_token fhb- | H{28,64}
pagerduty_key u+ | W{18}(?![A-Za-z0-9])
pagerduty_old_key y_ | W{18}(?![A-Za-z0-9_\\-])
configcat_key configcat-sdk-1/ configcat-sdk-1/ | W{20,24}/W{20,24}
flagsmith_key ser. | A{20,40}
statsig_key secret- console- | A{40,64}
devcycle_key dvc_server_ dvc_client_ dvc_mobile_ | [0-9a-f_]{30,80}
growthbook_secret secret_admin_ secret_user_ secret_readonly_ | W{20,80}
unleash_token *:*. *:production. *:development. default:production. default:development. | [0-9a-f]{40,64}
segment_token sgp_ | A{50,80}
checkly_key cu_ sv_ | H{30,64}
uptimerobot_key ur | N{6,10}-H{24,40}
fullstory_key na1. eu1. | B{40,120}={0,2}
optimizely_token 2: | W{40,64}
elastic_key essu_ essa_ | B{40,200}={0,2}
influx_token apiv3_ | W{40,120}
""")
