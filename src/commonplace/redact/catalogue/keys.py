"""Keys and tokens that no vendor owns: JSON Web Tokens, key material in text, wallets, generic secret prefixes."""

from __future__ import annotations

from typing import Final

from commonplace.redact.catalogue.formats import Format, rows

FORMATS: Final[tuple[Format, ...]] = rows("""
jwt eyJ | !W{8,4000}\\.(?:eyJ)?W{4,8000}\\.W{4,2000}(?:\\.W{4,4000}\\.W{4,400})?
jwt_unsigned eyJhbGciOiJub25l | !W{0,4000}\\.W{8,8000}\\.?
age_secret_key AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1 | !U{40,4000}
sui_private_key suiprivkey1 | !L{50,70}(?![A-Za-z0-9])
near_private_key ed25519: secp256k1: | [1-9A-HJ-NP-Za-km-z]{80,90}(?![A-Za-z0-9])
tezos_secret_key edsk spsk p2sk | [1-9A-HJ-NP-Za-km-z]{50,100}(?![A-Za-z0-9])
aleo_private_key APrivateKey1 | A{40,60}(?![A-Za-z0-9])
avalanche_private_key PrivateKey- | [1-9A-HJ-NP-Za-km-z]{44,56}(?![A-Za-z0-9])
zcash_secret_key secret-extended-key-main1 secret-spending-key-main1 | !L{60,400}
wallet_encrypted_key 6P | [1-9A-HJ-NP-Za-km-z]{56}(?![A-Za-z0-9])
nostr_secret_key nsec1 | [02-9ac-hj-np-z]{58}(?![A-Za-z0-9])
wallet_extended_key xprv yprv zprv tprv uprv vprv | [1-9A-HJ-NP-Za-km-z]{100,112}(?![A-Za-z0-9])
base64_private_key LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk LS0tLS1CRUdJTiBQUklWQVRFIEtFWS | !B{20,60000}={0,2}
base64_openssh_key LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ | !B{20,60000}={0,2}
base64_ec_key LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS LS0tLS1CRUdJTiBEU0EgUFJJVkFURSBLRVk | !B{20,60000}={0,2}
base64_encrypted_key LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRVk | !B{20,60000}={0,2}
base64_pgp_key LS0tLS1CRUdJTiBQR1AgUFJJVkFURSBLRVk | !B{20,60000}={0,2}
openssh_key_body b3BlbnNzaC1rZXktdjE | !B{40,60000}={0,2}
minisign_secret_key RWRTY0Iy | !B{60,400}={0,2}
django_secret_key django-insecure- | ![A-Za-z0-9!@#$%^&*(\\-_=+)]{20,100}
laravel_app_key base64: | [A-Za-z0-9+/]{42,44}={1,2}
secret_prefix secret_ secret- | A{24,200}
key_prefix key- apikey- api-key- api_key_ apikey_ | A{28,200}
token_prefix token_ token- tok_ tkn_ | A{24,200}
pat_prefix pat- pat_ | A{24,200}
live_prefix live_ test_ prod_ sandbox_ | A{24,200}
sk_prefix sk- sk_ rk_ | W{24,300}
webhook_secret whsec_ whs_ wh_sec_ | B{20,200}={0,2}
service_token svc_ svct_ sat_ | A{28,200}
""")
