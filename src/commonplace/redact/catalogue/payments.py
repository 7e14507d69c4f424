"""Payments, commerce, banking and exchanges."""

from __future__ import annotations

from typing import Final

from commonplace.redact.catalogue.formats import Format, rows

FORMATS: Final[tuple[Format, ...]] = rows("""
stripe_key sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ sk_org_live_ sk_org_test_ | A{16,255}
stripe_ephemeral_key ek_live_ ek_test_ uk_live_ | A{16,255}
stripe_webhook_secret whsec_ | B{20,100}={0,2}
square_token sq0atp- sq0csp- sq0idp- sandbox-sq0atb- sandbox-sq0csb- sandbox-sq0idb- | W{20,64}
square_access_token EAAA | W{56,80}(?![A-Za-z0-9])
paypal_access_token A21AA | W{60,300}
braintree_token access_token$production$ access_token$sandbox$ | L{12,24}\\$H{24,40}
adyen_key AQE | (?:[A-Za-z0-9+/={}()!@^\\-]|[\\[\\]](?=[A-Za-z0-9+/])){30,300}
razorpay_key rzp_live_ rzp_test_ | A{14,32}
plaid_token access-production- access-sandbox- access-development- public-production- link-production- | G{36}
flutterwave_key FLWSECK_TEST- FLWSECK- FLWSECK_LIVE- FLWSECK_TEST FLWSECK | [0-9a-zA-Z]{12,48}(?:-X)?
shopify_token shpat_ shpca_ shppa_ shpss_ shptka_ shpua_ shprt_ shpit_ | H{24,80}
lob_key live_ test_ live_pub_ test_pub_ | H{28,48}(?![A-Za-z0-9])
mollie_key live_ test_ access_ | A{28,48}(?![A-Za-z0-9])
gocardless_token live_ sandbox_ | W{38,48}(?![A-Za-z0-9])
xendit_key xnd_production_ xnd_development_ | A{20,100}
midtrans_key Mid-server- SB-Mid-server- | W{16,40}
mercadopago_token APP_USR- TEST- | ![0-9]{6,20}-[0-9]{4,8}-[0-9a-f]{24,40}(?:-[0-9]{4,12})?
mercadopago_secret APP_USR- TEST- | [0-9a-f]{8}-[0-9a-f\\-]{27}
asaas_key $aact_ $aact_prod_ $aact_hmlg_ | [A-Za-z0-9+/=:]{40,300}
paddle_key pdl_live_apikey_ pdl_sdbx_apikey_ pdl_ntfset_ pdl_ | [A-Za-z0-9_]{30,120}
polar_token polar_oat_ polar_pat_ polar_at_ polar_ci_ polar_cs_ polar_whs_ | A{30,80}
checkout_key sk_sbox_ sk_ sec_ | L{24,32}[a-z0-9*#$=]?(?![A-Za-z0-9_])
klarna_key klarna_live_api_ klarna_test_api_ | B{30,200}
revolut_token oa_prod_ oa_sand_ prod_revolut_ | W{36,64}
brex_token bxt_ | A{30,80}
mercury_token secret-token: mercury_production_ | [A-Za-z0-9_\\-+/=]{20,200}
ramp_token ramp_tok_ ramp_sec_ | A{24,100}
easypost_key EZAK EZTK | [0-9a-zA-Z]{48,64}(?![A-Za-z0-9])
shippo_token shippo_live_ shippo_test_ | H{36,48}
duffel_token duffel_live_ duffel_test_ | W{36,64}
chargebee_key live_ test_ | A{30,64}(?![A-Za-z0-9])
quicknode_key QN_ | H{30,64}
alchemy_key alcht_ alch_ | W{28,48}
coinbase_key organizations/ | [0-9a-f\\-]{36}/apiKeys/[0-9a-f\\-]{36}
crossmint_key sk_production_ sk_staging_ | A{60,300}
tatum_key t- | G{24}-[0-9a-f]{24}
paystack_key sk_live_ sk_test_ | H{40}(?![0-9A-Za-z])
omise_key skey_ skey_test_ skey_live_ | L{16,32}
pagarme_key ak_live_ ak_test_ sk_pagarme_ | A{28,48}
shipengine_key TEST_ | B{43}(?![A-Za-z0-9])
ebay_secret PRD- SBX- | [0-9a-f]{8,16}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}
amazon_login_token Atza¦ Atzr¦ | !B{40,2000}={0,2}
""")
