import { readXml } from './xml.ts'
import type { ZipFile } from './zip.ts'

/** The parts that a part of an office document names, by the ids that it names them with. */
export function relatedParts(zip: ZipFile, part: string): ReadonlyMap<string, RelatedPart> {
  const parts = new Map<string, RelatedPart>()
  const slash = part.lastIndexOf('/') + 1
  const listing = `${part.slice(0, slash)}_rels/${part.slice(slash)}.rels`
  if (!zip.has(listing)) return parts
  readXml(zip.read(listing), {
    open({ name, attributes }) {
      const { Id: id, Target: target, Type: type = '' } = attributes
      if (name !== 'Relationship' || id === undefined || target === undefined) return
      const path = new URL(target, `zip:///${part}`).pathname.slice(1)
      parts.set(id, { path: decodeURIComponent(path), kind: type.slice(type.lastIndexOf('/') + 1) })
    },
  })
  return parts
}

type RelatedPart = {
  readonly path: string
  /** The last word of its type: `slide`, `worksheet`, `notesSlide`. */
  readonly kind: string
}

/** The id of a related part that an element names; an `id` without a prefix is something else. */
export function relationId(attributes: Readonly<Record<string, string>>): string {
  const named = Object.entries(attributes).find(([name]) => name.endsWith(':id'))
  return named?.[1] ?? ''
}
