"""The exporter's own socket: TLS, client certificates and users as a web configuration file says, in a real process."""

import json
import logging
import ssl
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest
import requests
import trustme

from exporter.__main__ import main
from exporter.document import FleetError
from exporter.web import Web
from exporter.web_config import load_web_config
from running.ports import free_port
from running.processes import Process
from running.tools import Tool
from tests.exporter.captured import capture
from tests.exporter.pages import served
from tests.exporter.real_prometheus import prometheus
from tests.exporter.serving import write_fleet

PASSWORD = "planted-password"  # noqa: S105 - planted
TOKEN = "planted-token"  # noqa: S105 - planted
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
USER = ("prometheus", PASSWORD)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def folder(authority: trustme.CA, tmp_path: Path) -> Path:
    """Answer a folder with a certificate, its authority, an admin token and a fleet of one replica that is gone."""
    write_certificate(authority, tmp_path)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    (tmp_path / "token").write_text(TOKEN)
    write_fleet(tmp_path / "fleet.yml", a=f"http://127.0.0.1:{free_port()}")
    return tmp_path


def write_certificate(authority: trustme.CA, folder: Path) -> None:
    leaf = authority.issue_cert("127.0.0.1")
    leaf.private_key_pem.write_to_path(str(folder / "key.pem"))
    leaf.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))


TLS = "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"
USERS = f"basic_auth_users:\n  prometheus: {HASH}\n"
CLIENTS = f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n"


def start(folder: Path, web: str, scheme: str) -> tuple[str, Process]:
    (folder / "web.yml").write_text(web)
    listen = f"127.0.0.1:{free_port()}"
    options = {"--fleet": "fleet.yml", "--web-config-file": "web.yml", "--admin-token-file": "token"}
    command = [sys.executable, "-m", "exporter", "serve", "--listen", listen]
    for option, file in options.items():
        command += [option, str(folder / file)]
    process = Process.start("exporter", command, log=folder / "log")
    process.wait_until(lambda: f"listening on {scheme}://{listen}" in (folder / "log").read_text(), "listen")
    return f"{scheme}://{listen}", process


def status(url: str, folder: Path, **more: object) -> int:
    return requests.get(url, verify=str(folder / "ca.pem"), timeout=30, **more).status_code  # type: ignore[arg-type]


@pytest.fixture
def guarded(folder: Path) -> Iterator[str]:
    address, process = start(folder, TLS + USERS, "https")
    with process:
        yield address


def test_only_users_get_in_and_health_is_open(guarded: str, folder: Path) -> None:
    for path in ("/", "/metrics", "/targets", "/probe?target=a", "/drain", "/runbooks/", "/nothing"):
        answer = requests.get(f"{guarded}{path}", verify=str(folder / "ca.pem"), timeout=30)
        assert (answer.status_code, answer.headers["WWW-Authenticate"][:5]) == (401, "Basic"), path
        assert status(f"{guarded}{path}", folder, auth=USER) in {200, 404}
    for wrong in (
        ("prometheus", "wrong"),
        ("nobody", PASSWORD),
        ("", ""),
        ("prometheus", "x" * 100),
        ("prometheus", "\0"),
    ):
        assert status(f"{guarded}/metrics", folder, auth=wrong) == 401
    for header in ("Basic", "Basic !", "Basic cHJvbWV0aGV1cw==", f"Bearer {PASSWORD}", "Digest x"):
        assert status(f"{guarded}/metrics", folder, headers={"Authorization": header}) == 401
    assert status(f"{guarded}/-/healthy", folder) == 200


def test_targets_say_that_probes_are_https(guarded: str, folder: Path) -> None:
    answer = requests.get(f"{guarded}/targets", verify=str(folder / "ca.pem"), auth=USER, timeout=30)
    assert [target["labels"]["__scheme__"] for target in answer.json()] == ["https"]


def test_the_admin_token_opens_the_door_too(guarded: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--exporter", guarded, "--token-file", f"{folder}/token", "--ca-file", f"{folder}/ca.pem"]
    assert main(["drain", "a", *where]) == 0, capsys.readouterr().err
    assert status(f"{guarded}/drain", folder, headers={"Authorization": f"Bearer {TOKEN}"}) == 200


def test_plain_http_and_an_unknown_authority_get_nowhere(guarded: str) -> None:
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(guarded, timeout=30)
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get(guarded.replace("https", "http"), timeout=30)


def test_a_password_costs_its_hash_once(folder: Path) -> None:
    slow = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(12)).decode()
    address, process = start(folder, f"basic_auth_users: {{prometheus: {slow}}}\n", "http")
    with process, requests.Session() as session:
        session.auth = USER
        took = []
        for _ in range(6):
            begin = time.perf_counter()
            assert session.get(f"{address}/targets", timeout=30).status_code == 200
            took.append(time.perf_counter() - begin)
    assert min(took[1:]) < took[0] / 4


def test_certificate_and_users_are_taken_as_their_files_change(folder: Path) -> None:
    address, process = start(folder, TLS + USERS, "https")
    with process:
        other = trustme.CA()
        other.cert_pem.write_to_path(str(folder / "other.pem"))
        write_certificate(other, folder)

        def is_new() -> bool:
            try:
                return requests.get(address, verify=str(folder / "other.pem"), timeout=30).status_code == 401
            except requests.exceptions.SSLError:
                return False

        process.wait_until(is_new, "take the new certificate", seconds=30)
        (folder / "web.yml").write_text(f"{TLS}basic_auth_users:\n  another: {HASH}\n")
        (folder / "other.pem").replace(folder / "ca.pem")
        another = ("another", PASSWORD)
        process.wait_until(lambda: status(address, folder, auth=another) == 200, "take the new user", seconds=30)
        assert status(address, folder, auth=USER) == 401


def test_client_certificates_are_demanded_and_their_authority_is_followed(authority: trustme.CA, folder: Path) -> None:
    address, process = start(folder, CLIENTS, "https")
    clients = {"ours": authority, "theirs": trustme.CA()}
    for name, issuer in clients.items():
        issuer.issue_cert(f"{name}@example.org").private_key_and_cert_chain_pem.write_to_path(f"{folder}/{name}.pem")

    def gets_in(name: str) -> bool:
        try:
            return requests.get(address, verify=ca, cert=f"{folder}/{name}.pem" if name else None, timeout=30).ok
        except requests.exceptions.ConnectionError:
            return False

    ca = str(folder / "server-ca.pem")
    authority.cert_pem.write_to_path(ca)
    with process:
        assert [gets_in(name) for name in ("ours", "theirs", "")] == [True, False, False]
        clients["theirs"].cert_pem.write_to_path(str(folder / "ca.pem"))
        process.wait_until(lambda: gets_in("theirs"), "take the new authority", seconds=30)
        assert not gets_in("ours")


def test_a_file_that_breaks_while_we_serve_changes_nothing(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (folder / "web.yml").write_text(CLIENTS)
    web = Web(folder / "web.yml")
    before = web.config
    for broken, sentence in (
        (TLS + "  keyfile: x\n", "unknown key 'keyfile'"),
        (TLS, "only files can change while the exporter runs"),
    ):
        (folder / "web.yml").write_text(broken)
        web.refresh()
        web.refresh()
        assert web.config is before
        assert [sentence in record.message for record in caplog.records] == [True]
        caplog.clear()
    (folder / "web.yml").write_text(CLIENTS)
    (folder / "key.pem").write_text("half a k")
    web.refresh()
    assert "expected a certificate and its key in PEM" in caplog.text
    assert "half a k" not in caplog.text


@pytest.mark.parametrize("half", ["", "# soon\n", "basic_auth_users: {}\n", "basic_auth_users:\n"])
def test_no_file_that_is_half_written_opens_the_door(folder: Path, caplog: pytest.LogCaptureFixture, half: str) -> None:
    (folder / "web.yml").write_text(USERS)
    web = Web(folder / "web.yml")
    caplog.clear()
    (folder / "web.yml").write_text(half)
    web.refresh()
    assert set(web.config.users) == {"prometheus"}
    assert caplog.records[0].message.startswith("web configuration not reloaded: web.yml")
    assert ": basic_auth_users: " in caplog.records[0].message
    (folder / "web.yml").write_text(USERS.replace("prometheus", "other"))
    web.refresh()
    assert set(web.config.users) == {"other"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tls: {}", "web.yml:1: tls: unknown key 'tls', expected one of: tls_server_config, "),
        ("tls_server_config: {cert_file: cert.pem}", "web.yml:1: tls_server_config: key 'key_file' is missing, got "),
        (TLS + "  ciphers: [x]", "web.yml:4: tls_server_config.ciphers: unknown key 'ciphers', expected one of: "),
        (
            TLS + "  cipher_suites: [x]",
            "web.yml:4: tls_server_config.cipher_suites: the ciphers are OpenSSL's defaults;",
        ),
        (TLS + "  min_version: TLS10", "web.yml:4: tls_server_config.min_version: expected one of: TLS12, TLS13, got "),
        (
            TLS + "  min_version: TLS13\n  max_version: TLS12",
            "web.yml:4: tls_server_config.min_version: expected a version that is not above max_version, got 'TLS13'",
        ),
        (
            TLS + "  client_auth_type: RequireAnyClientCert\n  client_ca_file: ca.pem",
            "web.yml:4: tls_server_config.client_auth_type: expected a type that verifies (OpenSSL takes no",
        ),
        (
            TLS + "  client_auth_type: Maybe",
            "web.yml:4: tls_server_config.client_auth_type: expected one of: NoClientCert,",
        ),
        (
            TLS + "  client_auth_type: [RequireAndVerifyClientCert]\n  client_ca_file: ca.pem",
            "web.yml:4: tls_server_config.client_auth_type: expected one of: NoClientCert,",
        ),
        (
            TLS + "  min_version: {a: TLS12}",
            "web.yml:4: tls_server_config.min_version: expected one of: TLS12, TLS13, ",
        ),
        (
            "tls_server_config:\n",
            "web.yml:1: tls_server_config: expected what protects the exporter, or no such key, got",
        ),
        ("basic_auth_users:\n", "web.yml:1: basic_auth_users: expected what protects the exporter, or no such key"),
        (TLS + "  client_ca_file: ca.pem", "web.yml:1: tls_server_config: client_ca_file and client_auth_type belong "),
        (
            TLS + "  client_allowed_sans: [a]",
            "web.yml:4: tls_server_config.client_allowed_sans: names in client certificates are not checked; ",
        ),
        (
            TLS.replace("cert.pem", "none.pem"),
            "web.yml:2: tls_server_config.cert_file: expected an existing file (there is",
        ),
        (
            "http_server_config: {http2: true}",
            "web.yml:1: http_server_config.http2: the exporter speaks HTTP/1.1 only; ",
        ),
        ("http_server_config: {headers: {X: y}}", "web.yml:1: http_server_config.headers: no headers are added; put "),
        (
            "basic_auth_users: 'a:planted'",
            "web.yml:1: basic_auth_users: expected a mapping from user name to bcrypt hash",
        ),
        (
            TLS + "  key: planted",
            "web.yml:4: tls_server_config.key: keys stand in files; use key_file",
        ),
        (
            "basic_auth_users: {a: planted}",
            "web.yml:1: basic_auth_users: expected a name without ':' and a bcrypt hash ",
        ),
        (
            f"basic_auth_users: {{a: '{HASH.replace('$04$', '$31$')}'}}",
            "web.yml:1: basic_auth_users.a: expected a bcrypt cost from 4 to 15, got 31",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(folder: Path, text: str, sentence: str) -> None:
    (folder / "web.yml").write_text(text)
    with pytest.raises(FleetError) as refusal:
        load_web_config(folder / "web.yml")
    assert str(refusal.value).startswith(sentence)
    assert "planted" not in str(refusal.value)


def test_a_certificate_that_is_none_starts_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cert.pem").write_text("nonsense")
    (folder / "web.yml").write_text(TLS)
    assert main(["serve", "--fleet", f"{folder}/fleet.yml", "--web-config-file", f"{folder}/web.yml"]) == 1
    assert "expected a certificate and its key in PEM" in capsys.readouterr().err


def test_what_prometheus_takes_and_needs_nothing_is_taken(folder: Path) -> None:
    (folder / "web.yml").write_text(f"{TLS}  min_version: TLS13\nhttp_server_config: {{http2: false}}\n")
    config = load_web_config(folder / "web.yml")
    assert config.tls is not None
    assert config.tls.min_version is ssl.TLSVersion.TLSv1_3
    (folder / "web.yml").write_text("")
    assert load_web_config(folder / "web.yml").tls is None


def test_a_real_prometheus_gets_through_all_of_it(
    prometheus_binaries: Tool, authority: trustme.CA, folder: Path
) -> None:
    authority.issue_cert("prometheus@example.org").private_key_and_cert_chain_pem.write_to_path(f"{folder}/client.pem")
    (folder / "password").write_text(PASSWORD)
    access = {
        "tls_config": {f"{kind}_file": f"{folder}/{file}.pem" for kind, file in
                       (("ca", "ca"), ("cert", "client"), ("key", "client"))},
        "basic_auth": {"username": "prometheus", "password_file": f"{folder}/password"},
    }  # fmt: skip
    with served({"/metrics": capture("vllm-0.32.0/under-load")}) as engine:
        write_fleet(folder / "fleet.yml", a=f"http://{engine}")
        address, process = start(folder, CLIENTS + USERS, "https")
        discovery = {"url": f"{address}/targets", "refresh_interval": "1s", **access}
        job = {"job_name": "replicas", "http_sd_configs": [discovery], **access}
        with process, prometheus(prometheus_binaries, folder / "prometheus", [job], "1s") as server:
            server.wait_until(lambda one: bool(one.query('llm_replica_up{replica="a"} == 1')), "store the replica")


def test_no_secret_is_in_anything_that_a_run_produces(folder: Path) -> None:
    key = "planted-api-key"
    (folder / "api-key").write_text(key)
    fleet = "replicas:\n" + "".join(
        f'  - {{name: {name}, url: "{url}", api_key_file: api-key}}\n'
        for name, url in (
            ("a", f"http://127.0.0.1:{free_port()}"),
            ("b", "https://127.0.0.1:1"),
            ("c", "http://x.invalid"),
        )
    )
    (folder / "fleet.yml").write_text(fleet)
    address, process = start(folder, TLS + USERS, "https")
    said = []
    with process:
        for auth in (USER, ("prometheus", "planted-guess")):
            for path in ("/", "/metrics", "/targets", "/drain", *(f"/probe?target={name}" for name in "abc")):
                answer = requests.get(f"{address}{path}", verify=str(folder / "ca.pem"), auth=auth, timeout=20)
                said.append(json.dumps(dict(answer.headers)) + answer.text)
        for header in (f"Bearer {TOKEN}", "Bearer planted-wrong", f"Basic {TOKEN}"):
            for body in ('{"ttl": "1h"}', f'{{"ttl": "{TOKEN}x"'):
                answer = requests.put(
                    f"{address}/drain/a",
                    verify=str(folder / "ca.pem"),
                    headers={"Authorization": header},
                    data=body,
                    timeout=30,
                )
                said.append(answer.text)
        (folder / "fleet.yml").write_text(fleet.replace("http://127", "http://user:planted-in-url@127"))
        answer = requests.post(f"{address}/-/reload", verify=str(folder / "ca.pem"), auth=USER, timeout=30)
        said.append(answer.text)
        said.append(requests.get(address, verify=str(folder / "ca.pem"), auth=USER, timeout=30).text)
    said.append((folder / "log").read_text())
    assert answer.status_code == 400
    assert "refused" in said[-1]
    assert not [text for text in said if "planted" in text or HASH in text]
