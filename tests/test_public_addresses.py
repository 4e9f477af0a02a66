"""Public and private addresses and hosts."""

from __future__ import annotations

import pytest

from webfountain.public_addresses import is_private_host, is_public_address


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "1.1.1.1",
        "172.32.0.1",
        "192.0.1.1",
        "223.255.255.255",
        "2606:4700::1111",
        "2001:200::1",
        "2a00:1450::1",
        "64:ff9b::101:101",
        "2002:101:101::1",
        "::ffff:1.1.1.1",
    ],
)
def test_public_addresses_may_be_asked(address: str) -> None:
    assert is_public_address(address)
    assert not is_private_host(address)


PRIVATE = """127.0.0.1 127.0.1.7 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254
100.64.0.1 0.0.0.0 224.0.0.1 255.255.255.255
::1 :: fe80::1%eth0 fd00::1 ff02::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::1 64:ff9b::a9fe:a9fe
192.0.0.8 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.7 203.0.113.9 240.0.0.1
fec0::1 64:ff9b:1::7f00:1 ::7f00:1 ::ffff:0:7f00:1 3fff::1 5f00::1 100::1 2001::1 2001:db8::1 2001:20::1 4000::1"""


@pytest.mark.parametrize("address", PRIVATE.split())
def test_private_addresses_are_refused_also_inside_an_ipv6_address(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize("text", ["", "localhost", "example.org", "127.1", "0x7f000001"])
def test_what_is_no_address_is_not_public(text: str) -> None:
    assert not is_public_address(text)


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "localhost.", "printer.local", "db.internal", "::1"])
def test_some_hosts_are_private_by_name(host: str) -> None:
    assert is_private_host(host)


@pytest.mark.parametrize("host", ["example.org", "notlocalhost", "localhost.example.org"])
def test_names_alone_are_not_private(host: str) -> None:
    assert not is_private_host(host)
