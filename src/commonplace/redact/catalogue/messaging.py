"""Chat, mail, telephony and social networks."""

from __future__ import annotations

from typing import Final

from commonplace.redact.catalogue.formats import Format, rows

FORMATS: Final[tuple[Format, ...]] = rows("""
slack_token xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxe- xoxe.xoxp- xoxe.xoxb- | [A-Za-z0-9%\\-]{12,400}
slack_cookie xoxd- | [A-Za-z0-9%+/=\\-]{20,400}
slack_app_token xapp- | [A-Za-z0-9\\-]{20,300}
slack_workflow_token xwfp- | [A-Za-z0-9\\-]{20,300}
twilio_key SK AC | [0-9a-fA-F]{32}(?![A-Za-z0-9])
sendgrid_key SG. | W{16,32}\\.W{30,60}
mailgun_key key- pubkey- | [0-9a-f]{32}(?![A-Za-z0-9])
mandrill_key md- | A{20,30}(?![A-Za-z0-9])
resend_key re_ | [A-Za-z0-9]{6,12}_[A-Za-z0-9]{16,40}
brevo_key xkeysib- xsmtpsib- | H{40,80}-A{8,32}
mailersend_token mlsn. | H{40,80}
onesignal_key os_v2_app_ os_v2_org_ | L{50,120}
courier_key pk_prod_ pk_test_ dk_prod_ | U{28}(?![A-Za-z0-9])
intercom_token dG9rO | B{40,100}={0,2}
twitch_oauth oauth: | L{28,40}
twitter_bearer AAAAAAAAAAAAAAAAAAAA | [A-Za-z0-9%+/=_\\-]{30,200}
facebook_token EAA | A{30,400}
instagram_token IGQV IGQW IGAA IGQ | W{40,400}
threads_token THQW THAA | W{40,400}
linkedin_secret WPL_AP1. WPL_AP0. | D{8,40}={0,2}
linkedin_token AQV AQX | W{80,600}
dropbox_token sl. sl.u. sl.B | W{60,2000}
spotify_token BQ | W{120,400}
pinterest_token pina_ pinc_ pinr_ | W{30,400}
matrix_token syt_ mct_ mat_ mcr_ | [A-Za-z0-9_=]{16,200}
pushbullet_token o. | A{32}(?![A-Za-z0-9])
ntfy_token tk_ | L{29}(?![A-Za-z0-9])
klaviyo_key pk_ | H{34}(?![A-Za-z0-9])
beamer_key b_ | [A-Za-z0-9=_/\\-]{44}(?![A-Za-z0-9])
bird_key live_ test_ | A{25}(?![A-Za-z0-9])
telnyx_key KEY0 KEY | [0-9A-F]{20,40}_[A-Za-z0-9]{16,40}
discord_token mfa. | W{60,100}
tiktok_token act. rft. clt. | A{50,100}
stream_key live_ | N{8,12}_A{24,40}
""")
