import { crc32, deflateRawSync } from 'node:zlib'

/** An archive entry, possibly with wrong metadata. */
export type ArchiveEntry = {
  readonly name: string
  readonly content: Uint8Array
  /** The declared size; default: the actual one. */
  readonly saysBytes?: number
  readonly flags?: number
  /** Overlaps with the previous entry. */
  readonly overlaps?: boolean
}

/** Builds an archive with metadata that no library would write. */
export function makeArchive(
  entries: readonly ArchiveEntry[],
  { comment = '', saysEntries = entries.length } = {},
): Uint8Array {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  let start = 0
  for (const { name, content, saysBytes = content.length, flags = 0, overlaps } of entries) {
    const packed = deflateRawSync(content)
    const title = Buffer.from(name)
    const facts = Buffer.alloc(26)
    facts.writeUInt16LE(20, 0)
    facts.writeUInt16LE(flags, 2)
    facts.writeUInt16LE(8, 4)
    facts.writeUInt32LE(crc32(content), 10)
    facts.writeUInt32LE(packed.length, 14)
    facts.writeUInt32LE(saysBytes, 18)
    facts.writeUInt16LE(title.length, 22)
    if (overlaps !== true) {
      start = at
      const local = Buffer.concat([Buffer.from('PK\u0003\u0004'), facts, title, packed])
      parts.push(local)
      at += local.length
    }
    const rest = Buffer.alloc(16)
    rest.writeUInt32LE(start, 12)
    directory.push(
      Buffer.concat([Buffer.from('PK\u0001\u0002\u0014\u0000'), facts, rest.subarray(2), title]),
    )
  }
  const listing = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\u0005\u0006')
  end.writeUInt16LE(saysEntries, 8)
  end.writeUInt16LE(saysEntries, 10)
  end.writeUInt32LE(listing.length, 12)
  end.writeUInt32LE(at, 16)
  end.writeUInt16LE(comment.length, 20)
  return Buffer.concat([...parts, listing, end, Buffer.from(comment)])
}

/** The main part of a docx file. */
export function wordPart(text: string): Uint8Array {
  const namespace = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main'
  return Buffer.from(
    `<w:document xmlns:w="${namespace}"><w:body><w:p><w:r><w:t>${text}</w:t></w:r></w:p></w:body></w:document>`,
  )
}
