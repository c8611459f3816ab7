"""Writes twenty documents with the programs that people use, for bench/documents.ts.

Needs LibreOffice and the packages reportlab, python-docx, python-pptx, openpyxl, odfpy, EbookLib,
arabic-reshaper, python-bidi and Pillow.
"""

import subprocess
import sys
from pathlib import Path

import arabic_reshaper
import docx
import openpyxl
import pptx
from bidi.algorithm import get_display
from PIL import Image, ImageDraw, ImageFont
from ebooklib import epub
from odf import opendocument, style as odf_style, table as odf_table, text as odf_text
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import CIDFont, UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
path = lambda name: str(folder / name)

czech = "Příliš žluťoučký kůň úpěl ďábelské ódy. Zaměstnanci mají nárok na dovolenou."
russian = "Сотрудники имеют право на отпуск; продолжительность двадцать восемь дней."
japanese = "有給休暇は年間二十日で、翌年三月末まで繰り越すことができます。"
chinese = "员工每年享有十五天带薪年假，未使用的年假可以结转到次年三月。"
korean = "직원은 매년 십오일의 유급 휴가를 받을 수 있습니다."
traditional = "員工每年享有十五天帶薪年假。"
hebrew = [
    "העובדים זכאים ל-15 ימי חופשה בשנה (כולל חגים).",
    "שָׁלוֹם לְכֻלָּם, מחיר: 1,234.50 ₪ [ראו סעיף 4(ב)] \"מצוטט\".",
    "מוצר Sluice 2.0 תומך ב-PDF (גרסה 1.7).",
]
arabic = [
    "يحق للموظفين الحصول على إجازة سنوية مدتها 20 يوما (مدفوعة الأجر).",
    "السؤال لأحمد: هل وصلت الرسالة؟ نعم، في 12/05/2026.",
    "العَرَبِيَّةُ لُغَةٌ جميلة.",
    "کارمندان حق دارند از مرخصی سالانه استفاده کنند (۲۰ روز).",
]
mixed = "Mixed: the word שלום means peace, and مرحبا means hello (see السلام)."


def office(source, target, filter_name=None):
    """Converts with LibreOffice."""
    wanted = target if filter_name is None else f"{target}:{filter_name}"
    command = ["soffice", "--headless", "--convert-to", wanted, "--outdir", str(folder), path(source)]
    subprocess.run(command, check=True, capture_output=True)


def page(rows, right_to_left=False):
    direction = ' dir="rtl"' if right_to_left else ""
    body = "".join(f"<p{direction}>{row}</p>" for row in rows)
    return f'<html><head><meta charset="utf-8"></head><body><p>.</p>{body}</body></html>'


def printed(name, rows, right_to_left=False):
    """A PDF that LibreOffice exports."""
    (folder / f"{name}.html").write_text(page(rows, right_to_left))
    office(f"{name}.html", "odt", "writer8")
    office(f"{name}.odt", "pdf")
    for extension in ("html", "odt"):
        (folder / f"{name}.{extension}").unlink()


# Legacy encodings.
(folder / "czech-cp1250.txt").write_bytes(czech.encode("cp1250"))
(folder / "russian-koi8.csv").write_bytes(f"Имя;Описание\nОтпуск;{russian}\n".encode("koi8-r"))
(folder / "japanese-sjis.txt").write_bytes(japanese.encode("shift_jis"))
declared = f'<html><head><meta charset="gb18030"></head><body><p>{chinese}</p></body></html>'
(folder / "chinese-gb18030.html").write_bytes(declared.encode("gb18030"))

# Right to left.
printed("hebrew-office", hebrew, right_to_left=True)
printed("arabic-office", arabic, right_to_left=True)
printed("mixed-office", [mixed])
pdfmetrics.registerFont(TTFont("DejaVu", "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"))
drawing = canvas.Canvas(path("hebrew-arabic-drawn.pdf"))
drawing.setFont("DejaVu", 12)
for index, row in enumerate([hebrew[0], hebrew[2], arabic[0], arabic[1]]):
    drawing.drawRightString(520, 750 - 20 * index, get_display(arabic_reshaper.reshape(row)))
drawing.save()
document = docx.Document()
for row in [*hebrew, *arabic]:
    document.add_paragraph(row)
document.save(path("hebrew-arabic.docx"))

# Chinese, Japanese and Korean; the fonts of the first two are not embedded.
drawing = canvas.Canvas(path("cjk-unicode-fonts.pdf"))
for font, row in [
    ("STSong-Light", chinese),
    ("HeiseiMin-W3", japanese),
    ("HYSMyeongJo-Medium", korean),
    ("MSung-Light", traditional),
]:
    pdfmetrics.registerFont(UnicodeCIDFont(font))
    drawing.setFont(font, 14)
    drawing.drawString(72, 700, row)
    drawing.showPage()
drawing.save()
drawing = canvas.Canvas(path("cjk-legacy-fonts.pdf"))
for font, encoding, codec, row in [
    ("HeiseiMin-W3", "90ms-RKSJ-H", "cp932", japanese),
    ("STSong-Light", "GBK-EUC-H", "gbk", chinese),
    ("HYSMyeongJo-Medium", "KSCms-UHC-H", "cp949", korean),
    ("MSung-Light", "ETen-B5-H", "big5", traditional),
]:
    pdfmetrics.registerFont(CIDFont(font, encoding))
    drawing.setFont(f"{font}-{encoding}", 14)
    drawing.drawString(72, 700, row.encode(codec).decode("latin1"))
    drawing.showPage()
drawing.save()
printed("cjk-office", [chinese, japanese])

# Forms.
drawing = canvas.Canvas(path("form.pdf"))
drawing.drawString(72, 760, "Leave request")
drawing.acroForm.textfield(name="surname", tooltip="Surname", value="Nováková", x=72, y=700)
drawing.acroForm.checkbox(name="paid", tooltip="Paid leave", checked=True, x=72, y=660)
drawing.acroForm.checkbox(name="unpaid", tooltip="Unpaid leave", checked=False, x=72, y=640)
drawing.acroForm.choice(
    name="office", tooltip="Office", value="Brno", options=["Praha", "Brno"], x=72, y=600
)
drawing.save()

# A scanned page after a printed one.
scan = Image.new("L", (1000, 300), 255)
letters = ImageFont.truetype("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", 36)
ImageDraw.Draw(scan).text((40, 100), "The tide at Brest turns at noon.", font=letters, fill=0)
scan.save(path("scan.jpg"), quality=60)
drawing = canvas.Canvas(path("scan.pdf"))
drawing.drawString(72, 760, "Printed page")
drawing.showPage()
drawing.drawImage(path("scan.jpg"), 50, 600, width=480, height=144)
drawing.save()
(folder / "scan.jpg").unlink()

# Headers, footers, tables, notes.
document = docx.Document()
document.sections[0].header.paragraphs[0].text = "Contract 42"
document.sections[0].footer.paragraphs[0].text = "Confidential"
document.add_heading("Terms", 1)
document.add_paragraph(czech)
cells = document.add_table(rows=2, cols=2)
for row, values in enumerate([("Item", "Price"), ("Desk", "1 200 Kč")]):
    for column, value in enumerate(values):
        cells.cell(row, column).text = value
document.add_comment(document.paragraphs[0].runs, "Check the sum", author="Ann")
document.save(path("contract.docx"))
office("contract.docx", "odt")
office("contract.docx", "rtf")
office("contract.docx", "pdf")

# Sheets, slides and books.
book = openpyxl.Workbook()
book.active.title = "Staff"
for row in [("Name", "Days"), ("Řehoř", 12.5), ("山田", 20)]:
    book.active.append(row)
book.save(path("staff.xlsx"))
office("staff.xlsx", "ods")
show = pptx.Presentation()
slide = show.slides.add_slide(show.slide_layouts[1])
slide.shapes.title.text = "Results"
slide.placeholders[1].text = czech
slide.notes_slide.notes_text_frame.text = "Said aloud"
show.save(path("results.pptx"))
office("results.pptx", "odp")

made = opendocument.OpenDocumentText()
bold = odf_style.Style(name="Bold", family="text")
made.automaticstyles.addElement(bold)
made.text.addElement(odf_text.H(outlinelevel=1, text="Minutes"))
made.text.addElement(odf_text.P(text=russian))
items = odf_text.List()
for entry in ("first point", "second point"):
    item = odf_text.ListItem()
    item.addElement(odf_text.P(text=entry))
    items.addElement(item)
made.text.addElement(items)
rows = odf_table.Table(name="Votes")
for values in [("Yes", "No"), ("7", "2")]:
    row = odf_table.TableRow()
    for value in values:
        cell = odf_table.TableCell()
        cell.addElement(odf_text.P(text=value))
        row.addElement(cell)
    rows.addElement(row)
made.text.addElement(rows)
made.save(path("minutes.odt"))

novel = epub.EpubBook()
novel.set_identifier("sluice-example")
novel.set_title("Kniha")
novel.set_language("cs")
chapters = []
for number, row in enumerate([czech, japanese], start=1):
    chapter = epub.EpubHtml(title=f"Chapter {number}", file_name=f"text/chapter{number}.xhtml")
    chapter.content = f"<h1>Chapter {number}</h1><p>{row}</p>"
    novel.add_item(chapter)
    chapters.append(chapter)
novel.toc = chapters
novel.spine = ["nav", *chapters]
novel.add_item(epub.EpubNcx())
novel.add_item(epub.EpubNav())
epub.write_epub(path("novel.epub"), novel)
