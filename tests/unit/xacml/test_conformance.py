"""The conformance cases that lie beside the project: each response as the standard asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from sluicegate.cli.main import main
from sluicegate.errors import DiagnosticError
from sluicegate.language.xacml.read_policies import link_documents, read_policy
from sluicegate.language.xacml.read_requests import read_request
from sluicegate.language.xacml.write_policies import write_policy
from sluicegate.language.xacml.write_responses import write_response
from sluicegate.policy.xacml.context import Response
from sluicegate.policy.xacml.decide import decide

CASES = Path(__file__).parents[4] / "shared" / "data" / "xacml"
FOLDERS = sorted(CASES.iterdir()) if CASES.is_dir() else []
DECIDED = [each for each in FOLDERS if (each / "Response.xml").exists()]
REJECTED = [each for each in FOLDERS if (each / "Response.xml.ignore").exists()]

pytestmark = pytest.mark.skipif(not FOLDERS, reason="the conformance cases are not beside the project")


def list_policies(folder: Path) -> list[Path]:
    inner = folder / "Policies"
    return sorted(inner.glob("*.xml")) if inner.is_dir() else [folder / "Policy.xml"]


def read_answer(text: bytes) -> list[dict[str, Any]]:
    """What of a response has to agree; the order of what the standard leaves unordered is not."""
    root = etree.fromstring(text, etree.XMLParser(remove_comments=True, resolve_entities=False))
    return [dict(_read_result(each)) for each in root.iter("{*}Result")]


def _read_result(result: Any) -> Iterator[tuple[str, Any]]:
    yield "decision", result.findtext("{*}Decision").strip()
    yield "status", result.find("{*}Status/{*}StatusCode").get("Value")
    for name in ("Obligation", "Advice"):
        yield (
            name,
            sorted((each.get(f"{name}Id"), _read_values(each)) for each in result.iter(f"{{*}}{name}")),
        )
    groups = result.findall("{*}Attributes")
    named = ("AttributeId", "IncludeInResult")
    yield (
        "attributes",
        sorted(
            (
                group.get("Category"),
                each.get("Issuer") or "",
                *(each.get(n) for n in named),
                _read_values(each),
            )
            for group in groups
            for each in group
        ),
    )
    listed = result.find("{*}PolicyIdentifierList")
    yield (
        "policies",
        sorted((each.tag, each.get("Version"), each.text) for each in ([] if listed is None else listed)),
    )


def _read_values(element: Any) -> list[tuple[Any, ...]]:
    named = ("AttributeId", "Category", "Issuer", "DataType")
    return [(*(each.get(name) for name in named), each.text) for each in element]


@pytest.mark.parametrize("folder", DECIDED, ids=lambda folder: folder.name)
def test_response(folder: Path) -> None:
    root = link_documents([read_policy(each.read_bytes(), each.name) for each in list_policies(folder)])
    request = read_request((folder / "Request.xml").read_bytes(), "Request.xml")
    answer = write_response(Response((decide(root, request, None),)))
    assert read_answer(answer.encode()) == read_answer((folder / "Response.xml").read_bytes())


@pytest.mark.parametrize("folder", REJECTED, ids=lambda folder: folder.name)
def test_a_wrong_policy_is_rejected(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = str(folder / "Request.xml.ignore")
    assert main(["xacml", "decide", request, *map(str, list_policies(folder))]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "error[xacml-" in err


@pytest.mark.parametrize("folder", DECIDED, ids=lambda folder: folder.name)
def test_a_policy_that_is_written_and_read_again_is_the_same(folder: Path) -> None:
    for path in list_policies(folder):
        document = read_policy(path.read_bytes(), path.name).document
        assert read_policy(write_policy(document), "again.xml").document == document


def test_there_are_cases_of_each_group() -> None:
    groups = {each.name.rstrip("0123456789").partition("0")[0][:4].rstrip("0123456789") for each in FOLDERS}
    assert {"IIA", "IIB", "IIC", "IID", "IIE", "IIF", "IIIA"} <= groups
    assert len(REJECTED) >= 1


def test_a_file_that_is_no_policy_is_rejected() -> None:
    for folder in DECIDED[:20]:
        with pytest.raises(DiagnosticError, match="not expected here"):
            read_policy((folder / "Request.xml").read_bytes(), "Request.xml")
