"""TLS before the gateway: the configurations of docs/gateway.md, run as they stand there."""

from __future__ import annotations

import datetime
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

import duckdb
import pytest

from dphh.gateway.extensions import load
from tests.gateway.conftest import Place, free_port, needs_quack
from tests.gateway.test_shell import run

pytestmark = needs_quack

DOCS = Path(__file__).parents[2] / "docs" / "gateway.md"
#: An address of this machine that DuckDB's client does not take for the loopback: it speaks TLS.
HOST = "127.0.0.2"
PROXIES = {"nginx": shutil.which("nginx"), "caddy": shutil.which("caddy")}
PROXIES["caddy"] = PROXIES["caddy"] or shutil.which("caddy", path=str(Path(sys.executable).parent))


def from_docs(start: str) -> str:
    """The indented block of the page that starts so."""
    blocks = re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", DOCS.read_text(), re.MULTILINE)
    return next(block for block in blocks if block.strip().startswith(start))


def certificate(folder: Path) -> tuple[Path, Path]:
    """Signed by itself, for HOST: its file, and its key's."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "gateway.pem", folder / "gateway.key"
    files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


def nginx(folder: Path, served: int, port: int, pem: Path, key: Path) -> list[str]:
    server = from_docs("server {").replace("listen 9495", f"listen {HOST}:{port}")
    server = server.replace("gateway.example.org", HOST).replace("9494", str(served))
    server = server.replace("/etc/ssl/gateway.pem", str(pem)).replace(
        "/etc/ssl/gateway.key", str(key)
    )
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; events {{}} "
        f"http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path "
        f"{folder}/proxy;\n{server}}}\n"
    )
    return [str(PROXIES["nginx"]), "-e", "stderr", "-c", str(file)]


def caddy(folder: Path, served: int, port: int, pem: Path, key: Path) -> list[str]:
    site = from_docs("gateway.example.org:9494 {").replace("9494", str(served))
    site = site.replace(
        f"gateway.example.org:{served} {{",
        f"https://{HOST}:{port} {{\n bind {HOST}\n tls {pem} {key}",
    )
    file = folder / "Caddyfile"
    file.write_text("{\n admin off\n auto_https disable_redirects\n}\n" + site)
    return [str(PROXIES["caddy"]), "run", "--config", str(file), "--adapter", "caddyfile"]


@contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    proxy = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            assert proxy.poll() is None, f"{command[0]} ended"
            with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
                break
            time.sleep(0.1)
        yield
    finally:
        proxy.terminate()
        proxy.wait(250)


@pytest.mark.parametrize("configured", [nginx, caddy])
def test_a_gateway_is_asked_through_a_proxy_with_tls(place: Place, configured) -> None:
    name = configured.__name__
    if PROXIES[name] is None:
        pytest.skip(f"needs {name}")
    served = place.gateway().uri.rpartition(":")[2]
    pem, key = certificate(place.folder)
    port = free_port()
    with running(configured(place.folder, int(served), port, pem, key), port):
        uri = f"quack:{HOST}:{port}"
        typed = "SELECT count(*) FROM dphh_items('reviews', epsilon := 1.0, delta := 1e-7);"
        shell = ("shell", "--connect", uri, "--ca-cert", str(pem), "--", "-csv", "-noheader")
        done = run(place, *shell, typed=typed, DPHH_TOKEN=place.tokens["alice"])
        assert (done.stdout, done.stderr) == ("5\n", "")
        assert len(place.ledger.runs()) == 1

        # Without that certificate the client does not believe the proxy: it is TLS that is spoken.
        stranger = duckdb.connect()
        load(stranger)
        stranger.execute(f"CREATE SECRET (TYPE quack, TOKEN '{place.tokens['alice']}')")
        with pytest.raises(duckdb.Error, match="certificate"):
            stranger.execute(f"ATTACH '{uri}' AS srv")
