"""Code hosting, continuous integration, package registries and developer tools."""

from __future__ import annotations

from typing import Final

from commonplace.redact.catalogue.formats import Format, rows

FORMATS: Final[tuple[Format, ...]] = rows("""
github_token ghp_ gho_ ghu_ ghs_ ghr_ | A{30,255}
github_installation_token ghs_ | D{60,800}
github_fine_grained_token github_pat_ | [A-Za-z0-9_]{30,255}
gitlab_token glpat- gldt- glptt- glft- glsoat- glagent- gloas- glimt- glffct- glcbt- glrt- glrtr- glwt- | D{18,400}
gitlab_runner_registration GR1348941 | W{18,40}
atlassian_token ATATT3 ATATT ATCTT3 ATCTT | [A-Za-z0-9_\\-=]{40,400}
bitbucket_app_password ATBB | A{24,64}
bitbucket_server_token BBDC- | B{30,64}={0,2}
trello_token ATTA | [0-9a-fA-F]{60,80}
circleci_token CCIPAT_ CCIPRJ_ | [A-Za-z0-9_]{30,100}
buildkite_token bkua_ bkaj_ bkct_ bkpt_ bkpat_ bkar_ | L{30,80}
npm_token npm_ | A{34,64}
pypi_token pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBp pypi- | W{50,1000}
rubygems_key rubygems_ | H{40,64}
nuget_key oy2 | L{43}(?![A-Za-z0-9])
crates_token cio | A{32}(?![A-Za-z0-9])
docker_token dckr_pat_ dckr_oat_ dckr_ | W{20,64}
jfrog_key AKCp | A{60,80}
jfrog_reference_token cmVmdGtu | A{50,80}
jfrog_identity_token eyJ2ZXIiOiIyIiwidHlwIjoiSldUIiwiYWxnIjoi | !D{40,2000}
clojars_token CLOJARS_ clojars_ | H{40,80}
packagist_token packagist_ort_ packagist_out_ packagist_uat_ packagist_ack_ packagist_acs_ packagist_ | H{40,100}
openvsx_token ovsxat_ ovsxp_ | G{32,40}
jsr_token jsrp_ jsrd_ | A{24,64}
sonar_token sqp_ squ_ sqa_ sqb_ | H{36,64}
chromatic_token chpt_ | A{12,32}
appveyor_token v2. | L{20}(?![A-Za-z0-9])
octopus_key API- | U{24,36}(?![A-Za-z0-9_\\-])
jetbrains_token perm: perm- perm. | [A-Za-z0-9=_\\-]{4,}\\.[A-Za-z0-9=_\\-]{4,}\\.[A-Za-z0-9]{20,}
teamcity_token eyJ0eXAiOiAiVENWMiJ9. | !D{40,400}
sourcegraph_token sgp_ sgp_local_ sgd_ slk_ sgs_ | [0-9a-fA-F_]{36,80}
postman_key PMAK- PMAT- | A{20,32}-?A{20,40}
readme_key rdme_ | [0-9a-z]{50,80}
gitbook_token gb_api_ gb_ | A{30,64}
deepsource_token dsp_ | H{36,48}
snyk_token snyk_uat. snyk_sat. snyk_ | D{30,200}
bitrise_token bitpat_ | W{30,100}
infracost_key ico- | A{30,64}
transifex_token 1/ | [0-9a-f]{40}(?![0-9a-zA-Z:/])
wakatime_key waka_ waka_sec_ waka_tok_ | G{36,80}
artifactory_token eyJ2ZXIiOi | !D{60,2000}
intra42_secret s-s4t2ud- s-s4t2af- u-s4t2ud- | H{60,70}
coderabbit_key cr- | A{40,64}
""")
