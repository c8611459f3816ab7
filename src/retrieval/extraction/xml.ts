import { SaxesParser } from 'saxes'
import { UnreadableFile } from './unreadable.ts'

type XmlElement = {
  /** Without its prefix, which every writer chooses for itself. */
  readonly name: string
  /** As they are written. */
  readonly attributes: Readonly<Record<string, string>>
}

export type XmlReader = {
  open?(element: XmlElement): void
  text?(text: string): void
  close?(name: string): void
}

/** The parser is given so much at a time. */
const pieceBytes = 65_536

/** Reads a part of an office document, in its order. A document type, which these never have, is refused. */
export function readXml(bytes: Uint8Array, reader: XmlReader): void {
  const parser = new SaxesParser()
  parser.on('doctype', () => {
    throw new UnreadableFile('invalid_file')
  })
  parser.on('error', (error) => {
    throw new UnreadableFile('invalid_file', error)
  })
  parser.on('opentag', ({ name, attributes }) =>
    reader.open?.({ name: localName(name), attributes }),
  )
  parser.on('text', (text) => reader.text?.(text))
  parser.on('cdata', (text) => reader.text?.(text))
  parser.on('closetag', ({ name }) => reader.close?.(localName(name)))
  const decoder = new TextDecoder(bytes[0] === 0xff ? 'utf-16le' : 'utf-8')
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    parser.write(decoder.decode(bytes.subarray(at, at + pieceBytes), { stream: true }))
  }
  parser.close()
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}
