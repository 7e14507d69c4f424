"""What a name promises: does `DATADOG_API_KEY`, `tokenCount` or `primary key` stand before a secret?

A name is cut into words (case changes, underscores, dots, dashes, blanks). The last word that means a secret counts;
what stands after it (`…_id`, `…Name`, `…_count`) or before it (`public_…`, `next_…`) can take the meaning away.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Final

from commonplace.patterns import regex

_WORD: Final = regex(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class Rank(IntEnum):
    """How sure a name makes us: the higher, the weaker a value may look and still be taken."""

    NONE = 0
    WEAK = 1
    TOKEN = 2
    PASSWORD = 3


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PASSWORDS: Final = _set(
    """
    password passwd passwort passphrase passcode pwd pw pass passwords psk wachtwoord contrasena senha passe
    kennwort mdp clave parola haslo losenord salasana heslo sifre pswd psw passw passwrd authtok zugangscode
    """
)
_PASSWORD_ENDS: Final = ("password", "passwd", "passphrase", "passwort", "kennwort", "pwd", "pass")
_PASS_WORDS: Final = _set("compass bypass trespass surpass encompass overpass underpass multipass singlepass onepass")
_PASS_COMPOUNDS: Final = _set(
    """
    masterauth rootpw bindpw adminpw userpw dbpw ldappw keypw storepw smtppw mailpw ftppw mypw olcrootpw
    """
)
_TOKENS: Final = _set(
    """
    secret secrets token jwt bearer pat credential credentials creds authorization mnemonic salt pepper sas
    keydata seedphrase connectionstring nsec xoxd jeton geheimnis
    """
)
_TOKEN_ENDS: Final = ("secret", "token", "apikey", "apitoken", "authkey")
_KEY_COMPOUNDS: Final = _set(
    """
    apikey secretkey accesskey privatekey authkey appkey masterkey signingkey encryptionkey licensekey sshkey
    clientkey sharedkey servicekey accountkey sharedaccesskey storagekey rootkey subscriptionkey adminkey
    writekey deploykey sessionkey userkey apikeys secretaccesskey privkey serverkey functionkey hostkey skey
    consumerkey ingestkey keymaterial
    """
)
_KEY_LEADS: Final = _set(
    """
    api secret private priv access auth authentication authorization encryption encrypt signing sign master
    license licence service account shared admin app application client consumer deploy deployment integration
    write read ingest ingestion subscription storage root ssh session webhook server site project org
    organization hmac aes jwt cookie token personal user developer dev prod live merchant push vapid functions
    function stream sdk mobile insert insights query search recovery backup decrypt decryption wallet tls ssl
    tenant instance security crypto fernet flask django rails laravel nextauth flow management delivery preview
    maps translate geocoding environment env team bot pem pkcs8 symmetric routing agent node plugin partner
    vendor publisher upload ca seal unseal join pre preshared wireguard wg mapbox datadog dd algolia stripe
    openai anthropic azure cohere mistral groq deepgram assemblyai elevenlabs pinecone qdrant weaviate sendgrid
    mailgun mailchimp postmark twilio pagerduty opsgenie newrelic sentry honeycomb amplitude mixpanel segment
    heap launchdarkly statsig posthog cloudflare fastly heroku netlify vercel linode vultr digitalocean hetzner
    scaleway ovh alibaba aliyun tencent ibm oracle yandex google gcp firebase aws gemini replicate together
    fireworks perplexity openrouter deepseek stability tavily exa serpapi serper brave bing rapidapi alchemy
    infura moralis etherscan coingecko coinbase binance kraken kucoin bitfinex bybit okx polygon finnhub
    alphavantage quandl tiingo iex plaid square paypal adyen braintree razorpay mollie paystack shodan censys
    virustotal abuseipdb greynoise snyk sonar codecov coveralls circleci travis jenkins drone buildkite docker
    npm pypi nuget gem rubygems hunter clearbit pipedrive hubspot salesforce intercom zendesk freshdesk jira
    confluence asana trello airtable notion clickup monday linear contentful sanity prismic strapi storyblok
    ghost wordpress shopify woocommerce bigcommerce magento lob easypost shippo openweathermap weather
    weatherapi tomorrow tomtom here geoapify locationiq opencage ipinfo ipstack ipdata maxmind giphy unsplash
    pexels pixabay tmdb omdb spotify lastfm nasa nytimes guardian newsapi mediastack bitly rebrandly cloudinary
    imgix imgur uploadcare filestack transloadit browserstack saucelabs lambdatest percy applitools rollbar
    bugsnag raygun airbrake logdna logzio loggly papertrail sumologic splunk elastic grafana influx influxdb
    dynatrace appdynamics record reporter product activation registration installation openweather owm steam
    deployer validator bip32 rpc unseal backblaze meili meilisearch typesense mapquest sauce saucelabs
    """
)
_KEY_BARS: Final = _set(
    """
    public pub publishable primary foreign cache partition sort shard object lookup idempotency row group dedup
    hash index unique map dict event order range column composite natural surrogate candidate idx etag item
    sorting grouping react list hot short arrow enter escape shift ctrl alt meta tab delete home end press
    keyboard piano prop restore restored json xml yaml header field label translation i18n locale message msg
    feature flag config
    setting option bucket s3 state store redux zustand registry gpg pgp gpgkey host known fingerprint dictionary
    metadata sha md5 sha256 checksum build artifact cachekey answer major minor musical house door new old prev
    next current last first same another every each any no a an missing invalid wrong duplicate expected unknown
    extra
    """
)
_TOKEN_BARS: Final = _set(
    """
    next page continuation sync cancellation cancel csrf xsrf csrfmiddleware max min total num input output
    prompt completion cached reasoning eos bos pad unk sep cls mask special stop start end design syntax lexer
    previous prev pagination nextpage nextpagetoken pagetoken cursor resume sub subword first last per generated
    remaining used count antiforgery visual image audio text color parser current unexpected invalid change sequence
    action idempotency request lock update forward backward starting unit
    """
)
_TAILS: Final = _set(
    """
    id ids name names type types count counts length len size sizes file files filename path paths dir directory
    folder url urls uri uris endpoint endpoints env envvar var variable variables hash hashes hashed digest
    expiry expires expiration expire expired expireat ttl age lifetime duration arn ref reference refs version
    versions alias prefix suffix policy limit limits usage usages used field fields header headers label format
    algorithm algo provider store manager rotation rotate fingerprint thumbprint hint prompt regex pattern min
    max required enabled disabled validator validation validate rules rule strength input output message error
    errors help title text placeholder description index idx order budget budgets per rate cost price total
    totals window windows ratio estimate estimator exists present valid invalid status state mode scheme kind
    class cls func function fn method handler helper factory generator parser reader writer loader builder
    encoder decoder resolver source sources location host port domain issuer audience scope scopes claims lookup
    map mapping list set dict array uuid num number no sha sha1 sha256 md5 checksum created updated at on date
    time timestamp timeout delay interval retries attempts algorithmid selector bits bit bytes press pressed
    code codes down up event events board frame frames words word stroke pair pairs ring chain vault plus minus
    pool request requests response responses param params parameter parameters arg args argument option options
    callback config configuration settings schema model column table view page form service client cache mgr
    registry repository api server group groups role roles permission permissions owner user users email mail
    reset change changed update visible visibility toggle show hide confirm confirmation mismatch match matches
    example sample docs doc documentation template usageerror needed necessary stats metrics details info
    usagedata left context overlap step steps position offset start end begin stop public pub is has authority
    encryption backend backends json yaml yml xml html css js ts py encode decode encoding from parse split
    strip join replace startswith endswith lower upper find test exec contains includes equals compare bag item
    items oid nid const safe detect detection scanner scan scanning detector redact redacted redaction
    hasher hashers locker attachment verifier verifiers collection collections spec specs
    """
)
_HASHES: Final = _set(
    """
    sha1 sha256 sha384 sha512 checksum digest integrity etag fingerprint thumbprint hashed hash
    """
)


def _word_rank(words: list[str], at: int) -> Rank:
    """Return what one word of a name means, given the words before it."""
    word = words[at]
    before = words[at - 1] if at else ""
    if word in _PASSWORDS or word in _PASS_COMPOUNDS or (word.endswith(_PASSWORD_ENDS) and word not in _PASS_WORDS):
        return Rank.NONE if word == "clave" and before in ("palabra", "palabras") else Rank.PASSWORD
    if word in _TOKENS or word.endswith(_TOKEN_ENDS):
        barred = before in _TOKEN_BARS or (word.removesuffix("token") in _TOKEN_BARS)
        return Rank.NONE if barred else Rank.TOKEN
    if word in _KEY_COMPOUNDS:
        return Rank.TOKEN
    if word in ("key", "keys", "schluessel"):
        if before in _KEY_BARS:
            return Rank.NONE
        return (
            Rank.TOKEN if word == "key" and any(one in _KEY_LEADS for one in words[max(0, at - 3) : at]) else Rank.WEAK
        )
    if word == "auth" and before == "rediscli":
        return Rank.PASSWORD
    if word in ("auth", "seed", "license", "licence", "cred", "webhook"):
        return Rank.WEAK
    return Rank.NONE


PARTS: Final = frozenset((
    b"pass", b"pw", b"secret", b"token", b"key", b"auth", b"cred", b"jwt", b"psk", b"salt", b"_pat",
    b"kennwort", b"mdp", b"clave", b"senha", b"wachtwoord", b"zugangscode", b"contrasena", b"salasana",
    b"parola", b"haslo", b"heslo", b"pepper", b"jeton", b"geheimnis",
))  # fmt: skip
"""A name that promises a secret has one of these, in lower case."""
_NAME_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.$"
_BEFORE: Final = 48
"""So far before a key-like part a name may begin."""
_TAIL: Final = regex(rb"[\w.\-]{0,40}+")
_EDGES: Final = b".-_$"


def begin(data: bytes, at: int) -> int:
    """Return where the name begins that has a key-like part at a place."""
    left = data[max(0, at - _BEFORE) : at]
    start = at - (len(left) - len(left.rstrip(_NAME_BYTES)))
    if start < at and data[start - 1 : start] == b"\\":
        start += 1  # the letter of an escape
    if start + 2 <= at and data[start - 1 : start] == b"%":
        start += 2  # a percent code
    return start


def around(data: bytes, at: int, end: int) -> bytes:
    """Return the name that has a key-like part, which begins and ends at the given places."""
    tail = _TAIL.match(data, end)
    return data[begin(data, at) : tail.end() if tail else end].strip(_EDGES)


def split(name: bytes) -> list[str]:
    """Cut a name into its words, in lower case."""
    return [word.decode("ascii").lower() for word in _WORD.findall(name)]


@lru_cache(maxsize=8192)
def rank(name: bytes) -> Rank:
    """Return how strongly a name says that its value is a secret."""
    words = split(name)
    for at in range(len(words) - 1, -1, -1):
        found = _word_rank(words, at)
        if found is Rank.NONE:
            continue
        after = words[at + 1 :]
        if any(word in _TAILS for word in after):
            return Rank.NONE
        if words[-1] not in ("secret", "salt") and any(word in _HASHES for word in words):
            return Rank.NONE
        if "public" in words and found is not Rank.PASSWORD:
            return Rank.NONE
        if words[0] in ("is", "has", "should", "no", "without", "num", "max", "min", "count") and at:
            return Rank.NONE
        return found
    return Rank.NONE
