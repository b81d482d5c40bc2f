#!/usr/bin/env python3
"""Writes the corpus: positives.tsv and lookalikes.tsv, and of each a part that nobody looks at while the checks are written (held_out_*).

Nothing in it is real: every value is made of a seeded random generator, or is a number that standards give as an example. A line is a kind, a tab
and a text; `\\n` and `\\t` stand for line ends and tabs, `⟦…⟧` around what must go, and `~` is left out when it is read, so that what looks like a
credential does not stand here in one piece.
"""

import base64
import random
import string

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"


def some(r, alphabet, count):
    """Random characters, a digit and a letter among them."""
    text = [r.choice(alphabet) for _ in range(count)]
    text[count // 2] = r.choice([c for c in alphabet if c.isdigit()])
    text[count // 3] = r.choice([c for c in alphabet if c.isalpha()])
    return "".join(text)


# Kind, beginning, alphabet, length. The `~` keeps scanners of repositories quiet.
SHAPES = [
    ("api_key", "sk-~", ALNUM, 48), ("api_key", "sk-~proj-", URLSAFE, 80), ("api_key", "sk-~ant-api03-", URLSAFE, 93), ("api_key", "sk-~or-v1-", HEX, 64),
    ("api_key", "gs~k_", ALNUM, 52), ("api_key", "xa~i-", ALNUM, 80), ("api_key", "pp~lx-", ALNUM, 48), ("api_key", "h~f_", ALNUM, 34), ("api_key", "r~8_", ALNUM, 37),
    ("api_key", "dop~_v1_", HEX, 64), ("api_key", "shp~at_", HEX, 32), ("api_key", "shp~ss_", HEX, 32), ("api_key", "da~pi", HEX, 32), ("api_key", "lin~_api_", ALNUM, 40),
    ("api_key", "nt~n_", ALNUM, 46), ("api_key", "ATA~TT3xFfGF0", URLSAFE, 180), ("api_key", "NRA~K-", UPPER, 27), ("api_key", "dp~.pt.", ALNUM, 43), ("api_key", "PMA~K-", HEX, 24),
    ("api_key", "gl~sa_", ALNUM, 41), ("api_key", "hv~s.", URLSAFE, 90), ("api_key", "pu~l-", HEX, 40), ("api_key", "nf~p_", ALNUM, 36), ("api_key", "sb~p_", HEX, 40),
    ("api_key", "fig~d_", URLSAFE, 40), ("api_key", "tskey~-auth-", ALNUM, 32), ("api_key", "xkey~sib-", HEX, 64), ("api_key", "rzp_~live_", ALNUM, 14), ("api_key", "tg~-", ALNUM, 43),
    ("aws_key", "AK~IA", UPPER, 16), ("aws_key", "AS~IA", UPPER, 16), ("google_key", "AI~za", URLSAFE, 35), ("google_key", "ya~29.", URLSAFE, 120), ("google_key", "GOC~SPX-", URLSAFE, 28),
    ("github_token", "gh~p_", ALNUM, 36), ("github_token", "gh~o_", ALNUM, 36), ("github_token", "gh~u_", ALNUM, 36), ("github_token", "gh~s_", ALNUM, 36), ("github_token", "gh~r_", ALNUM, 36),
    ("github_token", "github~_pat_", ALNUM + "_", 82), ("gitlab_token", "glp~at-", ALNUM, 20), ("gitlab_token", "gl~dt-", ALNUM, 20), ("gitlab_token", "gl~rt-", ALNUM, 20),
    ("slack_token", "xox~b-", string.digits, 12), ("slack_token", "xox~p-", string.digits, 12), ("stripe_key", "sk_~live_", ALNUM, 24), ("stripe_key", "sk_~test_", ALNUM, 24),
    ("stripe_key", "pk_~live_", ALNUM, 24), ("stripe_key", "rk_~live_", ALNUM, 24), ("stripe_key", "whs~ec_", ALNUM, 32), ("registry_token", "np~m_", ALNUM, 36),
    ("registry_token", "pyp~i-AgEIcHlwaS5vcmc", URLSAFE, 120), ("registry_token", "dckr~_pat_", URLSAFE, 27), ("registry_token", "ruby~gems_", HEX, 48), ("private_key", "AGE-SECRET~-KEY-1", UPPER, 58),
]

CONTEXTS = ["{}", "the key {} is old", "`{}`", "const k = \"{}\";", "| name | {} |", "({})", "<code>{}</code>", "failed with {}.", "{{\"value\":\"{}\"}}", "a\\n{}\\nb", "x={}&y=1", "['{}', 1]"]
HELD_OUT_CONTEXTS = ["Use {} for now", "curl -H 'X-Thing: {}' https://a.example/", "cfg = {};", "- {}", "请用{}吧", "one,{},two", "=> {} <=", "\"{}\"\\n", "v:{}", "//{}"]


def shaped(r, row):
    kind, prefix, alphabet, count = row
    body = some(r, alphabet, count) if not alphabet.isdigit() else "".join(r.choice(alphabet) for _ in range(count)) + "-" + some(r, ALNUM, 24)
    return kind, prefix + body


def jwt(r):
    part = lambda count: some(r, URLSAFE, count)
    return "ey~JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI" + part(30) + "." + part(43)


def pem(r, label, newline="\\n", lines=6, end=True):
    body = newline.join("MII" + some(r, BASE64, 61) for _ in range(lines)) + newline + some(r, BASE64, 22) + "=="
    tail = f"{newline}-----END {label}-----" if end else ""
    return f"-----BEGIN {label.replace('PRIVATE', 'PRIV~ATE')}-----{newline}{body}{tail}"


def password(r):
    return some(r, ALNUM + "!%*_", r.randint(8, 16)).strip("!%*_") + r.choice("!7Xq")


def luhn(r, prefix, length):
    digits = [int(c) for c in prefix] + [r.randrange(10) for _ in range(length - len(prefix) - 1)]
    for last in range(10):
        total = sum(d if i % 2 == 0 else (d * 2 - 9 if d > 4 else d * 2) for i, d in enumerate(reversed(digits + [last])))
        if total % 10 == 0:
            return "".join(map(str, digits + [last]))
    raise AssertionError


def wrong_luhn(r, prefix, length):
    right = luhn(r, prefix, length)
    return right[:-1] + str((int(right[-1]) + r.randint(1, 9)) % 10)


def iban(r, country, bban):
    text = "".join(r.choice(string.digits) if c == "n" else r.choice(string.ascii_uppercase) if c == "a" else c for c in bban)
    number = "".join(str(int(c, 36)) for c in text + country + "00")
    return f"{country}{98 - int(number) % 97:02d}{text}"


def fours(text):
    return " ".join(text[i:i + 4] for i in range(0, len(text), 4))


IBANS = [("DE", "n" * 18), ("FR", "n" * 23), ("GB", "aaaa" + "n" * 14), ("NL", "aaaa" + "n" * 10), ("ES", "n" * 20), ("CH", "n" * 17), ("AT", "n" * 16), ("IT", "a" + "n" * 22),
         ("BE", "n" * 12), ("PL", "n" * 24), ("SE", "n" * 20), ("NO", "n" * 11), ("DK", "n" * 14), ("FI", "n" * 14), ("PT", "n" * 21), ("IE", "aaaa" + "n" * 14), ("LU", "n" * 16), ("CZ", "n" * 20)]
CARDS = [("4", 16), ("51", 16), ("55", 16), ("2221", 16), ("34", 15), ("37", 15), ("36", 14), ("6011", 16), ("65", 16), ("3530", 16), ("62", 16), ("5018", 16)]

PHONES = ["+49 30 1234567", "+49 (0)171 2345678", "+4915123456789", "+1 415 555 2671", "+1-212-555-0134", "+1 (650) 253-0000", "+44 20 7946 0958", "+44 7700 900123", "+33 1 23 45 67 89", "+33612345678",
          "+39 06 1234 5678", "+34 612 345 678", "+41 44 668 18 00", "+43 1 5123456", "+31 20 123 4567", "+32 2 123 45 67", "+46 8 123 456 78", "+47 22 12 34 56", "+45 12 34 56 78", "+48 512 345 678",
          "+91 98765 43210", "+86 138 0013 8000", "+81 3-1234-5678", "+82 10-1234-5678", "+55 11 91234-5678", "+61 2 9374 4000", "+27 82 123 4567", "+971 50 123 4567", "+7 495 123-45-67", "+353 1 234 5678",
          "(415) 555-2671", "415-555-2671", "415.555.2671", "1-800-555-2671", "030 1234567", "0171 1234567", "0171/1234567", "(030) 1234567", "01 23 45 67 89", "020 7946 0958", "07700 900123", "044 668 18 00", "0049 30 1234567", "06-12345678"]
PHONE_CONTEXTS = ["{}", "call {} now", "Tel.: {}", "phone={}", "| Jo | {} |", "({})", "{{\"phone\": \"{}\"}}", "reach me at {}.", "fax {}, ask for Jo"]

EMAILS = ["jo@example.com", "jo.doe@example.co.uk", "jo+news@mail.example.org", "j_d-1@sub.example-site.de", "JO.DOE@EXAMPLE.COM", "info@müller.de", "o'brien@example.ie", "x@example.museum", "user%x@example.org", "a.b.c.d@example.io"]
IPS = ["203.0.113.7", "198.51.100.23", "192.168.1.20", "10.0.12.5", "172.16.254.1", "8.8.8.8", "2001:db8::1", "2001:0db8:85a3:0000:0000:8a2e:0370:7334", "fe80::1ff:fe23:4567:890a", "::ffff:192.0.2.128", "fd12:3456:789a::1", "2a00:1450:4001:82a::200e"]
PERSON_CONTEXTS = ["{}", "by {} at noon", "<{}>", "from={} ok", "[{}]", "{{\"x\":\"{}\"}}", "{}, and more", "a\\t{}\\tb"]

# Handwritten: the value stands between the marks.
FIELDS = """
password	password: ⟦hunter2⟧
password	password=⟦hunter2⟧
password	PASSWORD="⟦correct horse battery⟧"
password	DB_PASSWORD=⟦s3cr3t!⟧
password	export PGPASSWORD=⟦Winter2024⟧
password	{"user":"jo","password":"⟦x⟧"}
password	{"db":{"passwd":"⟦a b c⟧"}}
password	{'password': '⟦tr0ub4dor&3⟧'}
password	{\\"password\\":\\"⟦hunter2⟧\\"}
password	spring.datasource.password=⟦Pa55word⟧
password	  password: "⟦l0ng&strange⟧"
password	MYSQL_ROOT_PASSWORD: ⟦rootpw99⟧
password	Server=db;Database=shop;User Id=sa;Password=⟦Str0ng;Pass⟧
password	Driver={ODBC};UID=sa;PWD=⟦hunter2⟧;
password	host=db port=5432 user=shop password=⟦s3cret⟧ dbname=shop
password	jdbc:mysql://db:3306/shop?user=root&password=⟦hunter2⟧
password	jdbc:postgresql://db/shop?user=a&password=⟦p%40ss⟧&ssl=true
password	postgres://shop:⟦hunter2⟧@db.internal:5432/shop
password	mysql://root:⟦r00t⟧@127.0.0.1/mysql
password	mongodb+srv://app:⟦Zx9!kq⟧@cluster0.example.net/?retryWrites=true
password	redis://:⟦p4ss⟧@cache:6379/0
password	amqp://guest:⟦guest1⟧@mq:5672/%2f
password	https://jo:⟦pa55⟧@git.example.org/repo.git
password	ftp://anonymous:⟦me1x⟧@ftp.example.org/
password	ldap://cn=admin:⟦adm1n⟧@ldap.example.org
password	smtp://mailer:⟦p@ssw0rd⟧@smtp.example.org:587
password	root:⟦t0psecret⟧@tcp(127.0.0.1:3306)/shop
password	app:⟦pw⟧@unix(/tmp/mysql.sock)/shop
password	<password>⟦hunter2⟧</password>
password	<user name="jo" password="⟦hunter2⟧"/>
password	<add key="x" connectionString="Data Source=.;Password=⟦hunter2⟧;"/>
password	mysql --password=⟦hunter2⟧ -u root
password	tool --password ⟦hunter2⟧ --verbose
password	curl 'https://a.example/login?user=jo&password=⟦abc⟧&x=1'
password	user=jo&passwd=⟦hunter2⟧&go=1
password	Your password is ⟦hunter2⟧.
password	The password is: ⟦Tr0ub4dor⟧
password	passphrase: "⟦correct-horse-battery-9⟧"
password	Passwort: ⟦geheim123⟧
password	kennwort=⟦geheim123⟧
password	pwd = '⟦Abc123xyz⟧'
password	DB_PASS=⟦s3cr3t⟧
password	SMTP_PASS: ⟦m4ilpass⟧
password	userPassword: "⟦hunter2!⟧"
password	admin_password => "⟦adm1n!!⟧"
password	ansible_ssh_pass=⟦Ch4nge_m3⟧
password	password_prod: ⟦hunter2x⟧
password	login(user="jo", password="⟦hunter2⟧")
password	$config['password'] = '⟦hunter2⟧';
password	password := "⟦hunter2⟧"
secret	client_secret=⟦8f7d6a5b4c3e2f1a⟧
secret	clientSecret: "⟦q1w2e3r4t5y6u7i8⟧"
secret	{"client_secret":"⟦abc⟧"}
secret	APP_SECRET=⟦f00b4r8az9qux1⟧
secret	JWT_SECRET="⟦sup3r-s3cr3t-v4lue⟧"
secret	SECRET_KEY_BASE=⟦0f1e2d3c4b5a69788796a5b4c3d2e1f0⟧
secret	SECRET_KEY = '⟦django-insecure-x1y2z3a4b5⟧'
secret	encryption_key: ⟦00112233445566778899aabbccddeeff⟧
secret	signing-key: "⟦k3y-for-signing-77⟧"
aws_key	aws_secret_access_key = ⟦wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY⟧
aws_key	AWS_SECRET_ACCESS_KEY=⟦wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY⟧
aws_key	"SecretAccessKey": "⟦wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY⟧"
aws_key	aws_session_token=⟦IQoJb3JpZ2luX2VjEJr//////////wEaCXVzLWVhc3QtMSJH⟧
aws_key	AWS_SESSION_TOKEN="⟦FwoGZXIvYXdzEBYaDHqa0AP1⟧"
azure_key	DefaultEndpointsProtocol=https;AccountName=x;AccountKey=⟦Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==⟧;EndpointSuffix=core.windows.net
azure_key	Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=⟦n1Zk8fX0y2wq7rT5uV3bA9cD4eF6gH8i=⟧
signature	https://x.blob.core.windows.net/c/b?sv=2022-11-02&sig=⟦abcDEF123%2Bxyz%3D⟧&se=2026
signature	https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=⟦fe5f80f77d5fa3beca038a248ff027d0445342fe⟧
azure_key	Ocp-Apim-Subscription-Key: ⟦0123456789abcdef0123456789abcdef⟧
token	access_token=⟦abc123def456ghi⟧
token	"refreshToken": "⟦1x2y3z4a5b6c7d⟧"
token	{"token":"⟦t⟧"}
token	GITHUB_TOKEN=⟦a1b2c3d4e5f6⟧
token	auth_token: ⟦9f8e7d6c5b4a3210⟧
token	//registry.npmjs.org/:_authToken=⟦3fa85f64-5717-4562-b3fc-2c963f66afa6⟧
token	X-Auth-Token: ⟦9f8e7d6c5b4a3210⟧
token	?access_token=⟦abc⟧&x=1
token	Authorization header was Bearer ⟦abc.def-123⟧
token	use "Bearer ⟦eXo4ZjEyMzQ1Njc4OTA⟧"
token	slack_bot_token: "⟦9f8e7d6c5b4a3210⟧"
token	csrf_token=⟦9f8e7d6c5b4a3210⟧
token	--token ⟦9f8e7d6c5b4a3210⟧
api_key	api_key=⟦abcd1234efgh5678⟧
api_key	x-api-key: ⟦abcd1234efgh5678⟧
api_key	X-API-Key: ⟦abcd1234⟧
api_key	{"apiKey":"⟦k⟧"}
api_key	{"api-key": "⟦abc def⟧"}
api_key	OPENAI_API_KEY=⟦abcd1234efgh5678⟧
api_key	apikey = "⟦abcd1234efgh5678⟧"
api_key	The API key: ⟦abcd1234efgh5678⟧
api_key	https://maps.example.com/x?key=⟦abcd1234⟧&q=1
api_key	STRIPE_KEY=⟦abcd1234efgh5678⟧
api_key	--api-key ⟦abcd1234efgh5678⟧
api_key	datadog_api_key: ⟦0123456789abcdef0123456789abcdef⟧
private_key	private_key: "⟦0xabcdef0123456789abcdef0123456789⟧"
private_key	PRIVATE_KEY=⟦0xabcdef0123456789abcdef0123456789⟧
credential	Authorization: Bearer ⟦abc.def-1⟧
credential	authorization: Basic ⟦dXNlcjpwYXNz⟧
credential	Authorization: Digest ⟦username="jo", realm="x", response="6629fae49393a05397450978507c4ef1"⟧
credential	Authorization: token ⟦abcdef123456⟧
credential	Authorization: ⟦abcdef123456⟧
credential	-H "Authorization: Bearer ⟦abc123def⟧" -v
credential	{"Authorization": "Bearer ⟦abc123def⟧"}
credential	'Authorization': 'Bearer ⟦abc123def⟧'
credential	Proxy-Authorization: Basic ⟦dXNlcjpwYXNz⟧
credential	Authorization: AWS4-HMAC-SHA256 ⟦Credential=AKID/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=fe5f80f7⟧
credential	login with Basic ⟦YWRtaW46aHVudGVyMg==⟧ please
cookie	Cookie: session=⟦abc123⟧
cookie	Cookie: a=⟦1x2y⟧; theme=⟦dark⟧
cookie	Set-Cookie: sid=⟦s3ss10n⟧; Path=/; HttpOnly
cookie	set-cookie: __Host-id=⟦eyJhIjoxfQ⟧; Secure
cookie	{"cookie": "a=⟦b1b1⟧; c=⟦d2d2⟧"}
cookie	JSESSIONID=⟦0123456789ABCDEF0123456789ABCDEF⟧
cookie	curl -H 'Cookie: sid=⟦abc123⟧' https://a.example
webhook	https://hooks.slack.com/services/⟦T00000000/B00000000/XXXXyyyyZZZZ1111aaaa2222⟧
webhook	https://discord.com/api/webhooks/⟦123456789012345678/abcDEF-ghi_JKL0123456789⟧
bot_token	⟦MTIzNDU2Nzg5MDEyMzQ1Njc4.GaBcDe.~abcdefghijklmnopqrstuvwxyz0123456789AB⟧
bot_token	bot ⟦1234567890:~AAabcdefghijklmnopqrstuvwxyz0123456⟧
api_key	⟦0123456789abcdef0123456789abcdef-us12⟧
api_key	⟦SG.~abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG⟧
"""

HELD_OUT_FIELDS = """
password	password : ⟦Sommer2025!⟧
password	"db_password": "⟦0000⟧",
password	redis_password=⟦k9Lm3nOp⟧
password	[database]\\npassword = ⟦swordfish7⟧\\nhost = db
password	env:\\n  - name: X\\n  - DB_PASSWORD: ⟦Xy7_lala⟧
password	mssql://sa:⟦Str0ngPa55⟧@sql.example.org:1433/master
password	postgresql+asyncpg://u:⟦pw1234⟧@h/db
password	Data Source=db;Initial Catalog=x;User ID=sa;Pwd=⟦qwe123QWE⟧
password	keytool -storepass x --password ⟦changeit7⟧
password	wifi_passphrase="⟦my wifi 2024⟧"
password	<property name="password" value="x"/><Password>⟦abc123⟧</Password>
password	user:jo pass=⟦h4x0r⟧
password	sshpass=⟦h4x0r99⟧
password	RABBITMQ_DEFAULT_PASS=⟦rabbit77⟧
password	smtpPassword=⟦mail-Pw-1⟧
password	{"newPassword": "⟦N3wPassword⟧", "oldPassword": "⟦0ldPassword⟧"}
password	password: ⟦p@ss:w0rd⟧
password	  passwd = "⟦it's 5 o'clock⟧"
password	mqtt://dev:⟦dev-Pw9⟧@broker.example.org
password	sftp://deploy:⟦D3pl0y#1⟧@host.example.org/srv
secret	oauth_client_secret: ⟦5a4b3c2d1e0f9a8b7c6d⟧
secret	webhook_secret = "⟦whatever-1234567⟧"
secret	TF_VAR_app_secret=⟦zz11yy22xx33⟧
secret	shared_secret: '⟦n0b0dyKn0ws⟧'
token	TELEGRAM_BOT_TOKEN=⟦a1b2c3d4e5f6g7⟧
token	id_token=⟦zxcvbnm1234567⟧
token	"sessionToken":"⟦ses-123456789-abc⟧"
token	vault token: ⟦0a1b2c3d4e5f6789⟧
token	deploy_token => '⟦dt-1234567890⟧'
token	https://api.example.org/v2/x?token=⟦zzz9⟧
token	PERSONAL_ACCESS_TOKEN: "⟦pat1234567890⟧"
token	bearer ⟦A1b2C3d4E5f6G7h8⟧
api_key	"x-goog-api-key": "⟦abc123⟧"
api_key	apikey:⟦ab12cd34ef56⟧
api_key	MAILGUN_API_KEY=⟦0a1b2c3d-4e5f-6789⟧
api_key	my_api_key_prod = "⟦ab12cd34ef56⟧"
api_key	?apikey=⟦zz⟧#frag
api_key	weather.api.key=⟦ab12cd34ef56⟧
aws_key	secretAccessKey: '⟦je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY⟧'
aws_key	export AWS_SECRET_ACCESS_KEY="⟦je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY⟧"
azure_key	AZURE_STORAGE_KEY=⟦bm90LWEtcmVhbC1rZXktYnV0LWxvbmc⟧
credential	authorization=Bearer ⟦qwerty12345⟧
credential	> Authorization: Negotiate ⟦YIIJvwYGKwYBBQUCoIIJszCCCa⟧
credential	headers = {"Authorization": "Token ⟦0123abcd⟧"}
cookie	cookie: PHPSESSID=⟦q1w2e3r4t5⟧; lang=⟦de1⟧
cookie	Set-Cookie: token=⟦abc.def⟧; Max-Age=3600
signature	https://cdn.example.org/f?Expires=1&Signature=⟦abcdefg12345~⟧&Key-Pair-Id=K1
webhook	https://hooks.slack.com/services/⟦T1/B2/abcdef1234567890⟧ is the hook
"""

LOOKALIKES = """
password: forgotten?
Forgot your password? Reset it here.
password: required
Password: must be at least 8 characters
The password is required.
the password is wrong
Enter your password: 
password: ${DB_PASSWORD}
password: {{ vault_password }}
password=$DB_PASSWORD
password: <your-password>
password: ********
password = os.environ["DB_PASSWORD"]
password = get_password()
password: str
password: String,
password = None
password: null
password=args.password
password_reset: true
password_hash_algorithm: bcrypt
passwordPolicy: strict
password_changed_at: 2026-01-02
PASSWORD_FILE=/run/secrets/db
PASSWORD_MIN_LENGTH=12
def login(user, password):
if password == "":
SELECT password FROM users
type="password" name="pw"
<input type="password" id="pwd">
pass: 12, fail: 3
All tests pass: yes
pass = 3
the compass: north
max_tokens: 512
tokens: 512
"max_tokens": 4096
total_tokens=1234
prompt_tokens: 87, completion_tokens: 12
token: a unit of text
token count = 1200
token_type: bearer
"token_type":"Bearer"
next_page_token: CAUQAA1234567890
"nextPageToken": "CAUQAA1234567890abc"
continuationToken=abc123def456
eos_token: </s>
pad_token = "<pad>"
token = next(tokens)
token: Token,
let token = lexer.next();
TOKEN_URL=https://auth.example.org/token
tokenizer: cl100k_base
a token of appreciation
the secret of success: work
secret: none
Secret Santa: Bob
secretary: Ann
secrets: inherit
SECRET_NAME=db-credentials
secretKeyRef:
key: value
primary key: id
"key": "name"
sort_key=created
public_key: none
PUBLIC_KEY_ID=abc
foreign_key: user_id
api_key: ${API_KEY}
api_key: your-api-key-here
apiKey: process.env.API_KEY
api_key = config.get("api_key")
api_key: str | None = None
keyboard: qwerty
monkey: banana
hotkey=ctrl+c
the key to this is patience
Bearer of bad news
the bearer token is missing
bearer authentication
Basic authentication is used
basic usage: see docs
Basic English for beginners
authorization: required
Authorization is done by the gate
Authorization: none
cookie: accepted
cookies = 3
Cookies: see our policy
eyJ is how base64 of a JSON object begins
cursor: eyJpZCI6MTIzNDV9
?cursor=eyJpZCI6MTIzNDV9&x=1
sk-short
sk-learn 1.4
task-management-system-overview
risk-assessment-document-2024
desk-lamp-with-usb-charger
AKIA is a prefix of keys
akiak
ghp_ is a prefix
xox-
AIza
SG.
hf_hub
npm_config_cache=/tmp/x
npm_lifecycle_event
gsk_
tg-1
glob.glob
claude-opus-4-20250514
claude-3-5-sonnet-20241022
gpt-4o-mini-2024-07-18
gpt-4.1
gemini-2.5-pro-preview-05-06
llama-3.3-70b-versatile
mistral-large-2411
text-embedding-3-large
o3-mini-high
qwen2.5-coder-32b-instruct
deepseek-r1-distill-llama-70b
http://localhost:8080/ then mail jo at work
http://localhost:8080
https://example.com/path?x=1&y=2
https://example.com:8443/a/b#c
see https://example.com/@user/post
https://example.com/a@b/c
postgres://localhost:5432/shop
postgres://shop@db/shop
redis://cache:6379/0
git@github.com:owner/name.git
ssh://git@github.com/owner/name
@types/node
actions/checkout@v4
pkg@1.2.3
icon@2x.png
user@localhost
a @ b
@decorator
x@y
sed s@a@b@g
v1.2.3.4
version 1.2.3.4
"version": "1.2.3.4"
Chrome/120.0.0.0 Safari/537.36
requests==2.31.0.1
firefox-115.0.2.1.tar.gz
1.2.3
1.2.3.4.5
OID 1.3.6.1.4.1.311
section 3.1.2.4
127.0.0.1
0.0.0.0:8080
255.255.255.0
::1
std::collections::HashMap
a::b::c
Foo::bar
12:30:45
2026-01-02T03:04:05Z
2026-01-02 03:04:05.678901+00:00
aa:bb:cc:dd:ee:ff
00:1B:44:11:3A:B7
1767225600
1767225600123
order 1234567890
id: 4815162342
invoice 2024-000123
ISBN 978-3-16-148410-0
ISBN 0-306-40615-2
SKU 123-456-789
4111 1111 1111 1112
1234 5678 9012 3456
4111-1111-1111-1113
0000 0000 0000 0000
1111111111111111
phone: none
call me later
tel: ask Jo
+1
+49
+100 points
a+b=c
1 + 2 = 3
+0100
(42)
(2024) 12-34
1.234.567,89
12 34 56
0x0123456789abcdef
10/12/2024
DE89 3704 0044 0532 0130 01
DE00 0000 0000 0000 0000 00
GB82 WEST 1234 5698 7654 33
AB12 3456
FR is a country
-----BEGIN CERTIFICATE-----\\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\\n-----END CERTIFICATE-----
-----BEGIN PUBLIC KEY-----\\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\\n-----END PUBLIC KEY-----
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB8Ht8Z3j6yDWPBHQtOp/R9rjWvfMYo3MSA/K6q8D86r
integrity: sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==
etag: "33a64df551425fcc55e4d42a148795d9f25f89d4"
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
commit 9fceb02d0ae598e95dc970b74767f19372d61af8
d41d8cd98f00b204e9800998ecf8427e  empty.txt
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
![x](data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)
trace_id=4bf92f3577b34da6a3ce929d0e0e4736
traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
request_id: req_011CSHoEeqs5C35K2UUqR7Fy
chatcmpl-9sK2hdkJ3lsP0aQ
call_abc123def456
toolu_01A09q90qw90lq917835lq9
{"id":"550e8400-e29b-41d4-a716-446655440000","name":"Ann"}
auth: none
auth = keys
"auth": "basic"
author: Jo
authority: high
signature: fn main()
signature = inspect.signature(f)
session: closed
credentials: same-origin
credentials = load_credentials()
The quick brown fox jumps over the lazy dog.
Der Schlüssel liegt unter der Matte.
パスワードを忘れた場合
"""

HELD_OUT_LOOKALIKES = """
Please choose a new password: it must differ from the last five.
Password strength: weak
password (optional): leave empty
password?: string
"password": ""
password: !vault |
passwordless: true
if (!password) return;
password.length < 8
PASSWORD_HASHERS = [
wrong password: try again
The secret: there is none.
token: string
token = request.headers.get("x")
token budget: 2000
tokens_per_minute: 60000
"completion_tokens": 25
cancellation_token: None
next_token = logits.argmax()
API key: required
api_key_env: OPENAI_API_KEY
key_prefix = "user:"
cache_key=users:42
lookup key: surname
public-key: see below
private: true
Access: public
bearer: the person who carries
Basic plan: 10 EUR
BASIC interpreter 2.0
basic types
Cookie settings: off
cookiecutter: template
risk-free-trial-offer-ends-soon
ask-me-anything-about-rust
whisk-until-the-eggs-are-fluffy
gpt-5-codex
claude-sonnet-4-5-20250929
o4-mini-deep-research-2025-06-26
bge-large-en-v1.5
https://user.example.com:443/x
see http://example.com/a:b@c
ws://127.0.0.1:9000/ws
mysql://127.0.0.1:3306
npm install @scope/pkg@latest
docker pull nginx@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
logo@3x.webp
me@home
driver 31.0.15.3623
release 10.2.0.4
Firefox/115.0.0.1
lib-2.4.6.8.jar
chapter 1.2.3.4
fe:ed:fa:ce:ca:fe
crate::net::ip
10:20:30:40
2024-12-31
31.12.2024 23:59
1700000000000
tracking 1Z999AA10123456784
lot 0123-4567
room (101) 22-33
4000 1234 5678 9011
6011 0000 0000 0005
30 mm x 40 mm
+2.5 %
+3 apples
x = y +1234
NL91 ABNA 0417 1643 01
CH93 0076 2011 6238 5295 8
md5 5d41402abc4b2a76b9719d911017c592
aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d
f47ac10b-58cc-4372-a567-0e02b2c3d479
data:font/woff2;base64,d09GMgABAAAAABEoAA4AAAAAMOQAABDP
"etag": "W/\\"0815\\""
-----BEGIN CERTIFICATE REQUEST-----
msg_01XFDUDYJgAACzvnptvVoYEL
arn:aws:iam::123456789012:role/Admin
i-0abcdef1234567890
projects/my-project-123/secrets/db/versions/1
signature verification failed
auth0 is a company
authors: [Ann, Bob]
credential helper: store
Le mot de passe est obligatoire.
请输入密码
"""


def lines(block):
    return [line for line in block.strip("\n").split("\n") if line.strip()]


def positives(seed, contexts, fields, phones, numbers):
    r = random.Random(seed)
    out = []
    for at, row in enumerate(SHAPES):
        for turn in range(2):
            kind, secret = shaped(r, row)
            out.append((kind, contexts[(at + turn * 5) % len(contexts)].format("⟦" + secret + "⟧")))
    for context in contexts[:6]:
        out.append(("jwt", context.format("⟦" + jwt(r) + "⟧")))
    for label in ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY"):
        out.append(("private_key", f"key:\\n⟦{pem(r, label)}⟧\\nend of it"))
        out.append(("private_key", f"one line ⟦{pem(r, label, chr(92) * 2 + 'n')}⟧"))
        out.append(("private_key", f"cut off\\n⟦{pem(r, label, end=False)}⟧"))
    for line in lines(fields):
        kind, text = line.split("\t", 1)
        out.append((kind, text))
    for at in range(numbers):
        out.append(("password", ["password={}", "\"password\": \"{}\"", "DB_PASSWORD={}", "pwd: {}", "mysql://a:{}@h/x"][at % 5].format("⟦" + password(r) + "⟧")))
        country, bban = IBANS[at % len(IBANS)]
        number = iban(r, country, bban)
        out.append(("iban", PERSON_CONTEXTS[at % 8].format("⟦" + (fours(number) if at % 2 else number) + "⟧")))
        prefix, length = CARDS[at % len(CARDS)]
        number = luhn(r, prefix, length)
        if length == 16 and at % 3:
            number = fours(number) if at % 3 == 1 else fours(number).replace(" ", "-")
        out.append(("card", PERSON_CONTEXTS[at % 8].format("⟦" + number + "⟧")))
        out.append(("email", PERSON_CONTEXTS[(at + 3) % 8].format("⟦" + EMAILS[at % len(EMAILS)] + "⟧")))
        out.append(("ip", PERSON_CONTEXTS[(at + 5) % 8].format("⟦" + IPS[at % len(IPS)] + "⟧")))
    for at, phone in enumerate(phones):
        out.append(("phone", PHONE_CONTEXTS[at % len(PHONE_CONTEXTS)].format("⟦" + phone + "⟧")))
    return out


def lookalikes(seed, block, count):
    r = random.Random(seed)
    out = lines(block)
    hexes = lambda n: "".join(r.choice(HEX) for _ in range(n))
    for at in range(count):
        out.append(f"{hexes(8)}-{hexes(4)}-4{hexes(3)}-a{hexes(3)}-{hexes(12)}")
        out.append(["md5 {}", "{}  file.txt", "etag \"{}\"", "trace {}"][at % 4].format(hexes(32)))
        out.append(["commit {}", "sha1: {}", "{} refs/heads/main"][at % 3].format(hexes(40)))
        out.append(f"sha256:{hexes(64)}")
        out.append(["card {}", "{}", "no. {} ok"][at % 3].format(wrong_luhn(r, *CARDS[at % len(CARDS)])))
        country, bban = IBANS[at % len(IBANS)]
        wrong = iban(r, country, bban)
        out.append(fours(wrong[:2] + f"{(int(wrong[2:4]) + 7) % 97:02d}" + wrong[4:]))
        out.append(f"ts={r.randint(1_600_000_000_000, 1_900_000_000_000)} n={r.randint(10_000, 99_999)}")
        image = base64.b64encode(r.randbytes(90)).decode()
        out.append(f"data:image/png;base64,{image}")
    return out


def write(name, rows):
    with open(name, "w", encoding="utf-8") as file:
        file.writelines(row + "\n" for row in rows)


def main():
    tab = lambda rows: ["\t".join(row) for row in rows]
    write("positives.tsv", tab(positives(1, CONTEXTS, FIELDS, PHONES[::2] + PHONES[1::2][:12], 24)))
    write("held_out_positives.tsv", tab(positives(2, HELD_OUT_CONTEXTS, HELD_OUT_FIELDS, PHONES[1::2], 20)))
    write("lookalikes.txt", lookalikes(3, LOOKALIKES, 12))
    write("held_out_lookalikes.txt", lookalikes(4, HELD_OUT_LOOKALIKES, 12))


if __name__ == "__main__":
    main()
