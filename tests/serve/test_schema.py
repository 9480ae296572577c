"""Schemathesis: requests made from the OpenAPI schema, right and wrong ones, are answered as the schema says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from lacuner.models.lookup import LookupTagger
from lacuner.serve.app import Service
from lacuner.serve.settings import ServiceSettings

schemathesis = pytest.importorskip("schemathesis")
pytestmark = pytest.mark.slow
ADDRESS = "http://localhost:8000"


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_requests_are_answered_as_the_schema_says(wrong: bool) -> None:
    mode = schemathesis.GenerationMode.NEGATIVE if wrong else schemathesis.GenerationMode.POSITIVE
    service = Service(LookupTagger({"Halden": "PLACE"}), ServiceSettings(Path("run")))
    tried = []
    with TestClient(service.app, ADDRESS) as client:
        schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
        operations = [result.ok() for result in schema.get_all_operations()]

        @given(st.data())
        @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
        def check(data: st.DataObject) -> None:
            case = data.draw(operation.as_strategy(generation_mode=mode))
            request = case.as_transport_kwargs(base_url=ADDRESS)
            sent = {name: request[name] for name in ("headers", "params", "json", "data") if name in request}
            answer = client.request(request["method"], request["url"], **sent)
            case.validate_response(schemathesis.Response.from_any(answer))
            tried.append(answer.status_code)

        for operation in operations:
            if not wrong or operation.path == "/predict":  # the others have no parameters that could be wrong
                check()
    assert len(operations) == 3
    assert set(tried) & ({400, 422} if wrong else {200})
