"""Models, agents and what surrounds them."""

from __future__ import annotations

from typing import Final

from commonplace.redact.catalogue.formats import Format, rows

FORMATS: Final[tuple[Format, ...]] = rows("""
openai_key sk-proj- sk-svcacct- sk-admin- sk-None- sk-service- | W{20,300}
openai_session sess- | A{36,64}
anthropic_key sk-ant-api03- sk-ant-admin01- sk-ant-oat01- sk-ant-ort01- sk-ant-sid01- sk-ant-sid02- sk-ant- | W{20,300}
openrouter_key sk-or-v1- sk-or- | A{24,128}
huggingface_token hf_ | A{28,64}
huggingface_org_token api_org_ | A{28,64}
groq_key gsk_ | A{32,128}
xai_key xai- xai-token- | A{40,128}
perplexity_key pplx- | A{32,128}
replicate_token r8_ | A{28,64}
together_key tgp_v1_ | W{28,128}
fireworks_key fw_ fw- | A{20,64}
langfuse_key sk-lf- pk-lf- | G{32,40}
langsmith_key lsv2_pt_ lsv2_sk_ ls__ | [0-9a-f]{20,64}(?:_[0-9a-f]{6,20})?
pinecone_key pcsk_ | W{30,128}
wandb_key wandb_v1_ | W{28,160}
tavily_key tvly- tvly-dev- tvly-prod- | W{20,64}
firecrawl_key fc- | [0-9a-f]{28,40}
cursor_key crsr_ key_ | [0-9a-f]{48,140}
nvidia_key nvapi- | W{40,120}
voyage_key pa- al- | W{36,64}(?![A-Za-z0-9])
jina_key jina_ | W{32,100}
cerebras_key csk- | L{32,80}
anyscale_key esecret_ aph0_ | W{16,100}
runpod_key rpa_ | A{32,80}
cartesia_key sk_car_ | W{16,64}
llamacloud_key llx- | W{32,80}
e2b_key e2b_ | [0-9a-f]{32,64}
e2b_access_token sk_e2b_ | [0-9a-f]{32,64}
browserbase_key bb_live_ bb_test_ | W{16,64}
mem0_key m0- | W{24,64}
zep_key z_ | [A-Za-z0-9]{30,}\\.[A-Za-z0-9_\\-]{16,}
helicone_key sk-helicone- pk-helicone- sk-helicone-eu- | W{16,80}
brave_search_key BSA | W{24,40}(?![A-Za-z0-9])
dify_key app- dataset- | A{24}(?![A-Za-z0-9_\\-])
coze_token pat_ | A{40,80}
predibase_token pb_ | W{20,64}
friendli_token flp_ | A{32,80}
nomic_key nk- | W{36,64}
mixedbread_key mxb_ emb_ | A{32,80}
upstage_key up_ | A{28,40}
openpipe_key opk_ opk- | A{30,80}
modal_token ak- as- | A{22}(?![A-Za-z0-9_\\-])
letta_key sk-let- | B{24,120}={0,2}
windsurf_key sk-ws- sk-ws-01- | W{24,120}
runway_key key_ | H{100,140}
stability_key sk- | A{32,64}(?![A-Za-z0-9])
elevenlabs_key sk_ | H{40,64}(?![A-Za-z0-9])
novita_key sk_ | W{36,64}
github_copilot_token tid= | ![0-9a-f]{32};exp=\\d+
lambda_cloud_key secret_lambda_ secret_hyperdrive_ | D{32,100}
gemini_key AQ.Ab | W{30,200}
heygen_key sk_V2_hgu_ sk_V2_ | W{30,80}
v0_key v1: v0: | A{20,40}:A{20,40}
composio_key uak_ ak_ | W{18,64}(?![A-Za-z0-9])
arize_key ak- | G{36}-A{16,40}
""")
