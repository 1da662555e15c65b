"""The alerts tell what happens: a real Prometheus scrapes the pods by the chart's PodMonitor, with the chart's rules."""

import pytest

from baton.demo.arrivals import Firm
from baton.demo.sights import look
from e2e.bed.releases import COMPONENTS, Release
from e2e.bed.stories import stranded, suspend
from e2e.bed.watching import Prometheus
from support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_every_workload_is_scraped(prometheus: Prometheus) -> None:
    """All of them answer."""
    wait_until(lambda: prometheus.targets() == dict.fromkeys(COMPONENTS, "up"), 90, interval=0.5, what="every target")


def test_the_stuck_alert_fires_and_resolves(release: Release, firm: Firm, prometheus: Prometheus) -> None:
    """With numbers and a runbook while a document is stuck and repairs are held back; no longer once they are let go."""
    filed = stranded(release, firm)
    try:
        wait_until(lambda: prometheus.firing("BatonDocumentsStuck"), 120, interval=0.5, what="the alert")
        (alert,) = [each for each in prometheus.active() if each["labels"]["alertname"] == "BatonDocumentsStuck"]
        assert alert["labels"]["namespace"] == release.namespace
        assert alert["labels"]["discrepancy"] == "request_ticket_missing"
        assert "for 1d 0h" in alert["annotations"]["description"]
        assert alert["annotations"]["runbook_url"].endswith("BatonDocumentsStuck.md")
        shown = release.kubernetes.kubectl("get", "regrec", "default", "--output=jsonpath={.status.found}")
        assert int(shown) == 1
    finally:
        suspend(release, None)
    wait_until(lambda: not prometheus.firing("BatonDocumentsStuck"), 120, interval=0.5, what="the alert's end")
    wait_until(lambda: look(firm)[filed.id].at_rest, 180, interval=0.5, what="the document's end")


def test_a_workload_that_is_gone_is_told(release: Release, prometheus: Prometheus) -> None:
    """Nobody works for the resource any more; then somebody does."""
    release.scale("operator", 0)
    try:
        wait_until(lambda: prometheus.firing("BatonOperatorAbsent"), 400, interval=0.5, what="the alert")
    finally:
        release.scale("operator", 1)
    wait_until(lambda: not prometheus.firing("BatonOperatorAbsent"), 120, interval=0.5, what="the alert's end")
