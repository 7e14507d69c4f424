"""Where secrets stand: names before them, URLs, headers, flags, files, blocks. `@` marks the made-up secret."""

from __future__ import annotations

import json
import random

import pytest

from commonplace.redact import MARK, redact
from redact import made

PASSWORDS = (
    "password: @",
    "the password is @.",
    "DB_PASSWORD=@",
    "password = '@'",
    '"password": "@"',
    "<password>@</password>",
    "spring.datasource.password=@",
    "Server=db;User Id=sa;Password=@;Encrypt=true",
    "host=db user=app password=@ dbname=x",
    "jdbc:mysql://db/x?user=app&password=@&ssl=true",
    "postgres://app:@@db:5432/x",
    "redis://:@@cache:6379/0",
    "mongodb+srv://app:@@cluster0.abc.mongodb.net/x",
    "amqp://app:@@mq:5672/",
    "https://me:@@git.test/a.git",
    "ftp://me:@@files.test/",
    "smtp://me:@@mail.test:587",
    "curl -u me:@ https://api.test",
    "curl --user 'me:@' https://api.test",
    "mysql -u root -p@ shop",
    "mysqldump -uroot -p'@' shop",
    "sshpass -p '@' ssh me@host",
    "psql --password=@",
    "app --password @ --verbose",
    "docker login -u me -p @ registry.test",
    "redis-cli -h cache -a @ ping",
    "echo @ | docker login -u me --password-stdin",
    "machine git.test login me password @",
    "db.test:5432:shop:app:@",
    "CREATE USER app IDENTIFIED BY '@';",
    "ALTER ROLE app WITH PASSWORD '@';",
    '$env:DB_PASSWORD = "@"',
    'setx DB_PASSWORD "@"',
    "ENV DB_PASSWORD=@",
    "ENV DB_PASSWORD @",
    "ARG DB_PASSWORD=@",
    "docker run -e DB_PASSWORD=@ app",
    'password = "@" # prod',
    "  password => '@',",
    "define('DB_PASSWORD', '@');",
    "config.set('password', '@')",
    'user.setPassword("@")',
    'password: str = "@"',
    'const dbPassword: string = "@";',
    '- name: DB_PASSWORD\n  value: "@"',
    '{"name": "DB_PASSWORD", "value": "@"}',
    "ansible_ssh_pass: @",
    "ansible_become_password: '@'",
    '<add key="Password" value="@" />',
    '<property name="password" value="@"/>',
    "requirepass @",
    "wpa_passphrase=@",
    "openssl rsa -in k.pem -passin pass:@",
    "PGPASSWORD=@ psql -h db",
    "net use z: \\\\\\\\srv\\\\share @ /user:me",
    "password: >-\n  @\n",
    "My password is @ and I like it",
    "**Password:** `@`",
    "| password | `@` |",
    "| user | ines |\n| password | @ |",
    "Password\t@",
    "Kennwort fürs Staging: @",
    "smbclient //srv/share -U me%@",
    "pass = @",
)
TOKENS = (
    "API_TOKEN=@",
    "export API_TOKEN=@",
    "api_token: @",
    '"apiToken": "@"',
    "X-Api-Key: @",
    "-H 'X-Auth-Token: @'",
    "--token @",
    "--api-key=@",
    "?api_key=@&x=1",
    "https://api.test/v1?access_token=@&page=2",
    "Authorization: Bearer @",
    "Authorization: Token @",
    "Authorization: ApiKey @",
    '"Authorization": "Bearer @"',
    "headers={'Authorization': f'Bearer @'}",
    "Cookie: theme=dark; sessionid=@; lang=en",
    "Set-Cookie: session=@; Path=/; HttpOnly",
    "//registry.test/:_authToken=@",
    'secret = "@"',
    "client_secret: '@'",
    "aws_secret_access_key = @",
    "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=@;EndpointSuffix=core.windows.net",
    "SharedAccessKeyName=root;SharedAccessKey=@",
    "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=@",
    "I set the API key to @ today",
    "The Datadog API key is @.",
    "apiKey: '@',",
    'new Client({ apiKey: "@" })',
    'Client(token="@")',
    "os.environ['API_KEY'] = '@'",
    "ENV['SECRET_KEY_BASE'] = '@'",
    "process.env.API_KEY = '@'",
    'headers.set("X-Api-Key", "@")',
    "kubectl create secret generic x --from-literal=token=@",
    "client-key-data: @",
    '{"auths":{"r.test":{"auth":"@"}}}',
    "token: |\n  @\n",
    "SECRET_KEY = '@'",
    "TF_VAR_api_token=@",
    "[profile]\nsecret_key=@",
    "git clone https://oauth2:@@gitlab.test/a/b.git",
    "git clone https://@@github.test/a/b.git",
    "wss://x.test/socket?token=@",
    "https://x.blob.core.windows.net/c/f?sv=2022-11-02&sr=b&sig=@&se=2026",
    "https://s3.test/f?X-Amz-Algorithm=AWS4&X-Amz-Signature=@",
    "\\u0026access_token=@\\u0026x=1",
    "api_key%3D@%26x",
    "my token: @",
    "token=@, user=me",
    "(token: @)",
    "[token=@]",
    "<token>@</token>",
)


def test_a_password_with_an_equals_sign_is_taken_whole() -> None:
    draw = random.Random(8)
    value = made.make("<A6>", draw) + "=" + made.make("<A8>", draw)

    assert redact(f"db_password: {value}\nport: 1") == f"db_password: {MARK}\nport: 1"


def fill(form: str, kind: str) -> tuple[str, str]:
    value = made.make(kind, random.Random(form))
    head, _, tail = form.partition("@")
    if form.count("@") == 2 and "@@" in form:
        return value, form.replace("@@", value + "@", 1)
    return value, head + value + tail


@pytest.mark.parametrize("form", PASSWORDS, ids=str)
def test_a_password_goes_and_what_is_around_it_stays(form: str) -> None:
    value, text = fill(form, "<A14>")

    assert redact(text) == text.replace(value, MARK)


@pytest.mark.parametrize("command", ["sshpass -p '@' ssh me@host", 'zip -P "@" a.zip b', "twine upload -u me -p '@' x"])
def test_a_password_with_blanks_goes_whole_where_a_command_takes_one(command: str) -> None:
    assert redact(command.replace("@", "rye 44 Tango", 1)) == command.replace("@", MARK, 1)


@pytest.mark.parametrize("form", TOKENS, ids=str)
def test_a_token_goes_and_what_is_around_it_stays(form: str) -> None:
    value, text = fill(form, "<A40>")

    assert redact(text) == text.replace(value, MARK)


def test_forms_are_found_inside_of_json_too() -> None:
    for form in PASSWORDS + TOKENS:
        value, text = fill(form, "<A40>")
        written = json.dumps({"output": f"$ cat x\n{text}\ndone", "n": [1, None]})
        twice = json.dumps([written])

        for document in (written, twice):
            out = redact(document)
            assert value not in out, form
            json.loads(out)
        found = json.loads(redact(written))
        assert found == {"output": f"$ cat x\n{text.replace(value, MARK)}\ndone", "n": [1, None]}, form


BODY = ["<B64>", "<B64>", "<B64>", "<B22>=="]
LABELS = (
    "RSA PRIVATE KEY",
    "PRIVATE KEY",
    "EC PRIVATE KEY",
    "DSA PRIVATE KEY",
    "OPENSSH PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
)


@pytest.mark.parametrize("label", [*LABELS, "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("prefix", ["", "+", "-", "    ", "  12→", "12:", "> ", "# "])
def test_the_body_of_a_key_block_becomes_one_mark(label: str, prefix: str) -> None:
    draw = random.Random(label + prefix)
    lines = [f"-----BEGIN {label}-----", *(made.make(line, draw) for line in BODY), f"-----END {label}-----", "rest"]
    text = "\n".join(prefix + line for line in lines)

    assert redact(text) == "\n".join(prefix + line for line in (lines[0], MARK, lines[-2], lines[-1]))


@pytest.mark.parametrize("label", LABELS)
def test_a_key_block_is_found_on_one_line_in_json_and_when_it_is_cut_off(label: str) -> None:
    draw = random.Random(label)
    body = [made.make(line, draw) for line in BODY]
    block = "\n".join([f"-----BEGIN {label}-----", *body, f"-----END {label}-----"])
    flat = block.replace("\n", "\\n")
    cut = block[: block.index(body[2]) + 30]

    for text in (
        flat,
        block.replace("\n", " "),
        json.dumps({"private_key": block}),
        json.dumps(json.dumps([block])),
        cut,
    ):
        out = redact(text)
        assert MARK in out
        assert not any(line[:24] in out for line in body)
    assert json.loads(redact(json.dumps({"private_key": block})))["private_key"].count("\n") == 2


def test_kubernetes_secrets_lose_their_values_and_keep_their_names() -> None:
    draw = random.Random(5)
    user, password = made.make("<A10>", draw) + "==", made.make("<A22>", draw) + "=="
    text = f"apiVersion: v1\ndata:\n  user: {user}\n  tls.key: {password}\nkind: Secret\nmetadata:\n  name: db\n"

    assert redact(text) == text.replace(user, MARK).replace(password, MARK)


def test_a_number_after_a_password_name_becomes_a_string_in_json() -> None:
    document = '{"password": 73920184, "port": 5432}'

    assert {"password": MARK, "port": 5432} == json.loads(redact(document))


def test_certificates_and_public_keys_stay() -> None:
    draw = random.Random(6)
    body = "\n".join(made.make("<B64>", draw) for _ in range(6))
    for label in ("CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY", "CERTIFICATE REQUEST"):
        text = f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"
        assert redact(text) is text
