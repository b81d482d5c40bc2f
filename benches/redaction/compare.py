#!/usr/bin/env python3
"""Other recognisers on toolgate's corpus of secrets and look-alikes.

    python3 -m venv venv && venv/bin/pip install detect-secrets presidio-analyzer
    venv/bin/python benches/redaction/compare.py

detect-secrets is asked with all its plugins and its default filters, each text as a file; presidio with its pattern recognisers alone (no
model of a language is loaded), at a score of 0.4 and more, and only for the kinds that it is made for. A positive counts as found where a finding
touches what must go; a look-alike as taken where there is any finding. toolgate's own rates are those that its tests assert.
"""

import collections
import logging
import pathlib
import sys
import tempfile

CORPUS = pathlib.Path(__file__).parent / "../../policies/tests/redact/corpus"
PERSONAL = {"email": "EMAIL_ADDRESS", "phone": "PHONE_NUMBER", "iban": "IBAN_CODE", "card": "CREDIT_CARD", "ip": "IP_ADDRESS"}


def unescaped(text):
    return text.replace("\\\\", "\x01").replace("\\n", "\n").replace("\\t", "\t").replace("\x01", "\\")


def positives(name):
    """Kind, text, and the places of what must go."""
    for line in (CORPUS / name).read_text(encoding="utf-8").splitlines():
        kind, marked = line.split("\t", 1)
        text, places = "", []
        for at, part in enumerate(unescaped(marked.replace("~", "")).replace("⟧", "⟦").split("⟦")):
            if at % 2:
                places.append((len(text), len(text) + len(part)))
            text += part
        yield kind, text, places


def lookalikes(name):
    return [line.replace("\\n", "\n") for line in (CORPUS / name).read_text(encoding="utf-8").splitlines()]


def detect_secrets():
    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    folder = pathlib.Path(tempfile.mkdtemp())

    def found(text):
        file = folder / "text.txt"
        file.write_text(text, encoding="utf-8")
        secrets = SecretsCollection()
        with default_settings():
            secrets.scan_file(str(file))
        return [secret.secret_value for _, secret in secrets]

    def touches(text, places):
        return any(value and (value in text[a:b] or text[a:b] in value or text[a:b].startswith(value[:12])) for value in found(text) for a, b in places)

    return touches, lambda text: bool(found(text))


def presidio():
    from presidio_analyzer.predefined_recognizers import CreditCardRecognizer, EmailRecognizer, IbanRecognizer, IpRecognizer, PhoneRecognizer

    recognizers = [CreditCardRecognizer(), EmailRecognizer(), IbanRecognizer(), IpRecognizer(), PhoneRecognizer(supported_regions=("US", "GB", "DE", "FR", "CH", "NL", "IN", "CA"))]

    def found(text):
        all_results = (recognizer.analyze(text, recognizer.supported_entities, None) or [] for recognizer in recognizers)
        return [result for results in all_results for result in results if result.score >= 0.4]

    return lambda text, places: any(result.start < b and a < result.end for result in found(text) for a, b in places), lambda text: bool(found(text))


def measure(name, tool, kinds):
    touches, takes = tool
    rows = [row for file in ("positives.tsv", "held_out_positives.tsv") for row in positives(file) if kinds(row[0])]
    hits = collections.Counter(kind for kind, text, places in rows if touches(text, places))
    total = collections.Counter(kind for kind, _, _ in rows)
    similar = [text for file in ("lookalikes.txt", "held_out_lookalikes.txt") for text in lookalikes(file)]
    taken = [text for text in similar if takes(text)]
    print(f"{name}: {sum(hits.values())} of {len(rows)} found ({100 * sum(hits.values()) / len(rows):.1f} %), {len(taken)} of {len(similar)} look-alikes taken ({100 * len(taken) / len(similar):.1f} %)")
    for kind in sorted(total):
        print(f"    {kind}: {hits[kind]} of {total[kind]}")
    if "-v" in sys.argv:
        print(*(f"    taken: {text!r}" for text in taken), sep="\n")


def main():
    logging.disable(logging.WARNING)
    measure("detect-secrets", detect_secrets(), lambda kind: kind not in PERSONAL)
    measure("presidio", presidio(), lambda kind: kind in PERSONAL)


if __name__ == "__main__":
    main()
