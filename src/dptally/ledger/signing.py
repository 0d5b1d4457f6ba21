"""Signed heads: Ed25519, from the ``cryptography`` package (the extra ``signing``)."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dptally.errors import InvalidArgument, InvalidType, MissingExtra
from dptally.ledger.chain import Head

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["Signer", "check_signature", "new_signing_key"]

_DOMAIN = b"dptally ledger head signature 1\x00"


def _require() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise MissingExtra("cryptography", "signing") from None


def new_signing_key(path: str | Path) -> str:
    """Write a new private key (PEM, readable by its owner alone) where no file is; the public key, in
    hexadecimal digits, for whoever checks heads.
    """
    _require()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidArgument("path", "a new file: a key is never overwritten", str(path)) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
    return Signer(path).key


class Signer:
    """A private key that signs heads."""

    __slots__ = ("_private", "key")

    def __init__(self, path: str | Path) -> None:
        _require()
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if not isinstance(path, (str, Path)):
            raise InvalidType("signer", "the path of a private key", path)
        private: object = None
        with contextlib.suppress(OSError, ValueError, TypeError):
            private = serialization.load_pem_private_key(Path(path).read_bytes(), password=None)
        if not isinstance(private, Ed25519PrivateKey):
            raise InvalidArgument(
                "signer", "the path of an Ed25519 private key (new_signing_key writes one)", str(path)
            )
        self._private: Ed25519PrivateKey = private
        self.key = private.public_key().public_bytes_raw().hex()

    def signed(self, head: Head) -> Head:
        """The head with this key's signature."""
        signature = self._private.sign(_DOMAIN + head.statement.encode()).hex()
        return dataclasses.replace(head, signature=signature, key=self.key)


def check_signature(head: Head, key: str) -> None:
    """Raise InvalidArgument unless this public key (hexadecimal digits) signed the head."""
    _require()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
    except (ValueError, TypeError):
        raise InvalidArgument("key", "a public Ed25519 key of 64 hexadecimal digits", key) from None
    good = False
    if head.signature is not None and head.key == key:
        try:
            public.verify(bytes.fromhex(head.signature), _DOMAIN + head.statement.encode())
            good = True
        except InvalidSignature:
            pass
    if not good:
        raise InvalidArgument("head", f"signed by the key {key}", head.key or "a head without a signature")
