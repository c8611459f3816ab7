import { strToU8, zipSync } from 'fflate'

/** Minimal office documents. */

const xmlHead = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
const mainNamespaces =
  'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
const wordNamespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
const sheetNamespace = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
const slideNamespaces = [
  mainNamespaces,
  'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"',
  'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"',
].join(' ')

/** A PDF with these lines per page; an empty line starts a new paragraph. */
export function makePdf(
  pages: readonly (readonly string[])[],
  { locked = false, picture = false } = {},
): Uint8Array {
  const objects = ['<< /Type /Catalog /Pages 2 0 R >>', '']
  const add = (object: string) => objects.push(object)
  const font = add('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>')
  const image = add(pdfStream('00ff00', ['/Type /XObject /Subtype /Image /Width 1 /Height 1']))
  const kids = pages.map((lines) => {
    const text = lines.map((line) => `(${line.replace(/[()\\]/g, '\\$&')}) Tj T*`).join('\n')
    const drawn = picture
      ? '100 0 0 100 72 600 cm /I Do'
      : `BT /F 12 Tf 14 TL 72 720 Td\n${text} ET`
    const content = add(pdfStream(drawn))
    const resources = `<< /Font << /F ${font} 0 R >> /XObject << /I ${image} 0 R >> >>`
    const box = '/MediaBox [0 0 612 792]'
    return add(
      `<< /Type /Page /Parent 2 0 R ${box} /Resources ${resources} /Contents ${content} 0 R >>`,
    )
  })
  objects[1] = `<< /Type /Pages /Kids [${kids.map((kid) => `${kid} 0 R`).join(' ')}] /Count ${kids.length} >>`
  const key = `<${'5a'.repeat(32)}>`
  const lock = `/Encrypt << /Filter /Standard /V 1 /R 2 /O ${key} /U ${key} /P -44 >> /ID [<00> <00>]`
  return writePdf(objects, locked ? lock : '')
}

function pdfStream(content: string, dictionary: readonly string[] = []): string {
  const colours = dictionary.length > 0 ? '/ColorSpace /DeviceRGB /BitsPerComponent 8' : ''
  return `<< ${dictionary.join(' ')} ${colours} /Length ${content.length} >>\nstream\n${content}\nendstream`
}

function writePdf(objects: readonly string[], trailer: string): Uint8Array {
  let text = '%PDF-1.4\n'
  const places = objects.map((object, at) => {
    const place = text.length
    text += `${at + 1} 0 obj\n${object}\nendobj\n`
    return `${String(place).padStart(10, '0')} 00000 n \n`
  })
  const size = objects.length + 1
  const table = `xref\n0 ${size}\n0000000000 65535 f \n${places.join('')}`
  const end = `trailer\n<< /Size ${size} /Root 1 0 R ${trailer} >>\nstartxref\n${text.length}\n%%EOF\n`
  return strToU8(text + table + end, true)
}

/** Each line is a heading (`# …`), a table row (`| a | b |`) or a paragraph. */
export function makeDocx(lines: readonly string[]): Uint8Array {
  const body = lines.map((line) => {
    if (line.startsWith('|')) {
      const cells = line.slice(1, -1).split('|')
      const row = cells.map((cell) => `<w:tc>${wordParagraph(cell.trim())}</w:tc>`).join('')
      return `<w:tbl><w:tr>${row}</w:tr></w:tbl>`
    }
    const style = line.startsWith('# ') ? 'Heading1' : null
    return wordParagraph(line.replace(/^# /, ''), style)
  })
  return packOffice({
    'word/document.xml': `<w:document ${wordNamespace}><w:body>${body.join('')}</w:body></w:document>`,
    '_rels/.rels': relations({ rId1: ['officeDocument', 'word/document.xml'] }),
  })
}

function wordParagraph(text: string, style: string | null = null): string {
  const properties = style === null ? '' : `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>`
  return `<w:p>${properties}<w:r><w:t xml:space="preserve">${escapeXml(text)}</w:t></w:r></w:p>`
}

export type Cell = string | number | boolean | Date

/** Rows of cells by sheet name. */
export function makeXlsx(
  sheets: Readonly<Record<string, readonly (readonly Cell[])[]>>,
): Uint8Array {
  const names = Object.keys(sheets)
  const strings: string[] = []
  const cell = (value: Cell): string => {
    if (typeof value === 'number') return `<c><v>${value}</v></c>`
    if (typeof value === 'boolean') return `<c t="b"><v>${value ? 1 : 0}</v></c>`
    if (typeof value === 'string') return `<c t="s"><v>${strings.push(value) - 1}</v></c>`
    return `<c s="1"><v>${value.getTime() / 86_400_000 + 25_569}</v></c>`
  }
  const parts = names.map((name, at) => {
    const rows = (sheets[name] ?? []).map((row) => `<row>${row.map(cell).join('')}</row>`).join('')
    const data = `<worksheet ${sheetNamespace}><sheetData>${rows}</sheetData></worksheet>`
    return [`xl/worksheets/sheet${at + 1}.xml`, data] as const
  })
  const listed = names.map(
    (name, at) => `<sheet name="${escapeXml(name)}" sheetId="${at + 1}" r:id="rId${at + 1}"/>`,
  )
  return packOffice({
    ...Object.fromEntries(parts),
    'xl/workbook.xml': `<workbook ${sheetNamespace} ${mainNamespaces}><sheets>${listed.join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relations({
      ...Object.fromEntries(
        parts.map(([path], at) => [`rId${at + 1}`, ['worksheet', path.slice('xl/'.length)]]),
      ),
      rId1000: ['sharedStrings', 'sharedStrings.xml'],
      rId1001: ['styles', '/xl/styles.xml'],
    }),
    'xl/sharedStrings.xml': `<sst ${sheetNamespace}>${strings.map((text) => `<si><t>${escapeXml(text)}</t></si>`).join('')}</sst>`,
    'xl/styles.xml': `<styleSheet ${sheetNamespace}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>`,
  })
}

/** Slides with a title, paragraphs and notes. */
export function makePptx(
  slides: readonly { readonly lines: readonly string[]; readonly notes?: string }[],
): Uint8Array {
  const parts = slides.flatMap(({ lines, notes }, at) => {
    const [title = '', ...rest] = lines
    const shapes = slideShape([title], 'title') + slideShape(rest, 'body')
    const name = `slide${at + 1}.xml`
    const slide = [`ppt/slides/${name}`, `<p:sld ${slideNamespaces}>${shapes}</p:sld>`] as const
    if (notes === undefined) return [slide]
    const notesPart = `<p:notes ${slideNamespaces}>${slideShape([notes], 'body')}${slideShape(['7'], 'sldNum')}</p:notes>`
    const relation = relations({ rId1: ['notesSlide', `../notesSlides/${name}`] })
    return [
      slide,
      [`ppt/notesSlides/${name}`, notesPart] as const,
      [`ppt/slides/_rels/${name}.rels`, relation] as const,
    ]
  })
  const order = slides.map((_, at) => `<p:sldId id="${256 + at}" r:id="rId${at + 1}"/>`).join('')
  return packOffice({
    ...Object.fromEntries(parts),
    'ppt/presentation.xml': `<p:presentation ${slideNamespaces}><p:sldIdLst>${order}</p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relations(
      Object.fromEntries(
        slides.map((_, at) => [`rId${at + 1}`, ['slide', `slides/slide${at + 1}.xml`]]),
      ),
    ),
  })
}

function slideShape(lines: readonly string[], placeholder: string): string {
  const text = lines.map((line) => `<a:p><a:r><a:t>${escapeXml(line)}</a:t></a:r></a:p>`).join('')
  return `<p:sp><p:nvPr><p:ph type="${placeholder}"/></p:nvPr><p:txBody>${text}</p:txBody></p:sp>`
}

function relations(targets: Readonly<Record<string, readonly string[]>>): string {
  const base = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
  const listed = Object.entries(targets).map(
    ([id, [kind, target]]) =>
      `<Relationship Id="${id}" Type="${base}/${kind}" Target="${target}"/>`,
  )
  const namespace = 'http://schemas.openxmlformats.org/package/2006/relationships'
  return `<Relationships xmlns="${namespace}">${listed.join('')}</Relationships>`
}

function packOffice(parts: Readonly<Record<string, string>>): Uint8Array {
  const types = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
  const all = { '[Content_Types].xml': types, ...parts }
  return zipSync(
    Object.fromEntries(Object.entries(all).map(([path, xml]) => [path, strToU8(xmlHead + xml)])),
  )
}

function escapeXml(text: string): string {
  return text.replace(/[<>&"]/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
