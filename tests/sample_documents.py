"""Small documents in every format, as other programs write them."""

import io
import zipfile

import docx
import odfdo


def archive(parts: dict[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, part in parts.items():
            file.writestr(name, part)
    return data.getvalue()


def word_file() -> bytes:
    document = docx.Document()
    document.add_heading("The house", 1)
    paragraph = document.add_paragraph("The ")
    paragraph.add_run("red house").bold = True
    paragraph.add_run(" is very old.")
    document.add_paragraph("The dog is old.", style="List Bullet")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "The cat is new.", "12"
    split = document.add_paragraph("I bought")
    split.add_run(" a new car").italic = True
    split.add_run().add_break()
    split.add_run("Good morning.")
    document.sections[0].header.paragraphs[0].text = "The house is red."
    data = io.BytesIO()
    document.save(data)
    return data.getvalue()


def open_document() -> bytes:
    document = odfdo.Document("text")
    document.body.clear()
    document.body.append(odfdo.Header(1, "The house"))
    paragraph = odfdo.Paragraph("The red house is very old.")
    paragraph.set_span("bold", regex="red house")
    document.body.append(paragraph)
    noted = odfdo.Paragraph("I bought a new car.")
    noted.insert_note(after="new", note_id="n1", citation="1", body="The dog is old.")
    document.body.append(noted)
    data = io.BytesIO()
    document.save(data)
    return data.getvalue()


PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>The house</title><link href="a.css"/></head>
<body><h1 id="a">The house</h1>
<p>The <b>red house</b> is very old.<br/>The dog is old. <img alt="The cat is old."/></p>
<script>//<![CDATA[
if (a < b) {}
//]]></script></body></html>
"""


def book(**more: str) -> bytes:
    container = '<container><rootfiles><rootfile full-path="OEBPS/c.opf"/></rootfiles></container>'
    package = """<package xmlns:dc="x"><metadata><dc:title>The old house</dc:title>
    <dc:language>en</dc:language></metadata>
    <manifest><item href="one.xhtml" media-type="application/xhtml+xml"/><item href="a.png" media-type="image/png"/>
    <item href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest></package>"""
    toc = "<ncx><navMap><navPoint><navLabel><text>The house</text></navLabel></navPoint></navMap></ncx>"
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OEBPS/c.opf": package,
            "OEBPS/one.xhtml": PAGE,
            "OEBPS/a.png": b"\x89PNG\x00",
            "OEBPS/toc.ncx": toc,
            **more,
        }
    )


SRT = """1
00:00:01,000 --> 00:00:02,500
<i>The house</i> is red.
The dog is old.

2
00:00:03,000 --> 00:00:04,000
- Good morning.
- Where is my book?

3
00:00:05,000 --> 00:00:06,000
{\\an8}The cat is new.
"""


PO = """# note
msgid ""
msgstr ""
"Language: en\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

#: a.py:1
msgid "The dog is old."
msgstr ""

msgid "The house"
msgstr "Mi casa"

#, python-format
msgid "I have %d car."
msgid_plural "I have %d cars."
msgstr[0] ""
msgstr[1] ""
"""


MARKDOWN = """---
title: The house
---
# The *old* dog

The house is red, with a [red door](http://x.y "The door") and `the code`,
**very old** \\* &amp; ![alt text](img.png) <b>green</b> <http://auto.link>
[the cat][r] and hard\x20\x20
break.

> The dog is old.
> The cat is new.

1. I bought a car
   yesterday.
- [ ] The dog

| The dog | b |
|---------|---|
| a cat   | The *old* cat \\| x |

```
the code
```

<div>The house <b>is</b> red.</div>

    indented code

[r]: http://ref "The title"
"""

VTT = """WEBVTT

NOTE The house

STYLE
::cue { color: red }

one
00:01.000 --> 00:02.000 line:0
<v Tom>The dog is old.</v>

00:03.000 --> 00:04.000
Good <i>morning</i> &amp; <00:03.500>welcome.
"""
