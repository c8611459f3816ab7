import { SaxesParser } from 'saxes'
import { tableRow } from './document-text.ts'
import type { Gaps } from './gaps.ts'
import { UnreadableFile } from './unreadable.ts'
import type { ZipFile } from './zip.ts'

/** The XML parts of office documents. */

type XmlElement = {
  /** Local name; prefixes vary between writers. */
  readonly name: string
  /** By their qualified names. */
  readonly attributes: Readonly<Record<string, string>>
}

export type XmlHandler = {
  open?(element: XmlElement): void
  text?(text: string): void
  close?(name: string): void
}

const chunkBytes = 65_536

/** Parses a part. Refuses document type declarations, which office documents never have. */
export function readXml(bytes: Uint8Array, handler: XmlHandler): void {
  const parser = new SaxesParser()
  parser.on('doctype', () => {
    throw new UnreadableFile('invalid_file')
  })
  parser.on('error', (error) => {
    throw new UnreadableFile('invalid_file', error)
  })
  parser.on('opentag', ({ name, attributes }) =>
    handler.open?.({ name: localName(name), attributes }),
  )
  parser.on('text', (text) => handler.text?.(text))
  parser.on('cdata', (text) => handler.text?.(text))
  parser.on('closetag', ({ name }) => handler.close?.(localName(name)))
  const decoder = new TextDecoder(bytes[0] === 0xff ? 'utf-16le' : 'utf-8')
  for (let start = 0; start < bytes.length; start += chunkBytes) {
    parser.write(decoder.decode(bytes.subarray(start, start + chunkBytes), { stream: true }))
  }
  parser.close()
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

type RelatedPart = {
  readonly path: string
  /** The last segment of its type: `slide`, `worksheet`, `notesSlide`. */
  readonly kind: string
}

/** The parts that a part refers to, by relationship id. */
export function relatedParts(zip: ZipFile, part: string): ReadonlyMap<string, RelatedPart> {
  const parts = new Map<string, RelatedPart>()
  const slash = part.lastIndexOf('/') + 1
  const relationships = `${part.slice(0, slash)}_rels/${part.slice(slash)}.rels`
  if (!zip.has(relationships)) return parts
  readXml(zip.read(relationships), {
    open({ name, attributes }) {
      const { Id: id, Target: target, Type: type = '' } = attributes
      if (name !== 'Relationship' || id === undefined || target === undefined) return
      const path = new URL(target, `zip:///${part}`).pathname.slice(1)
      parts.set(id, { path: decodeURIComponent(path), kind: type.slice(type.lastIndexOf('/') + 1) })
    },
  })
  return parts
}

/** The relationship id of an element; an `id` without a prefix is another attribute. */
export function relationId(attributes: Readonly<Record<string, string>>): string {
  const found = Object.entries(attributes).find(([name]) => name.endsWith(':id'))
  return found?.[1] ?? ''
}

/** Counts the pictures and embedded files of a document, which are not read. */
export function countSkipped(zip: ZipFile, gaps: Gaps): void {
  for (const name of zip.names) {
    if (/\/media\/|^Pictures\//.test(name)) gaps.add('images_skipped')
    // The sheets behind charts, whose values are read.
    else if (/\/embeddings\/(?!Microsoft_Excel)/.test(name))
      gaps.add('parts_skipped', { place: name.slice(name.lastIndexOf('/') + 1).slice(0, 100) })
  }
}

/** The titles of a chart, and its categories and values series by series. */
export function readChart(bytes: Uint8Array): string {
  const rows: string[][] = []
  let row: string[] | null = null
  let text = ''
  readXml(bytes, {
    open({ name }) {
      if (/^(?:tx|cat|val|xVal|yVal|title)$/.test(name) && row === null) row = []
      text = ''
    },
    text(part) {
      text += part
    },
    close(name) {
      if (name === 'v' || name === 't') row?.push(text)
      if (!/^(?:tx|cat|val|xVal|yVal|title)$/.test(name) || row === null) return
      if (name !== 'tx' || row.length > 0) {
        rows.push(row)
        row = null
      }
    },
  })
  return rows
    .filter((cells) => cells.length > 0)
    .map(tableRow)
    .join('\n')
}
