import { decodeText } from './decode.ts'
import type { Gaps } from './gaps.ts'
import { htmlToText } from './html.ts'
import { readXml } from './office-xml.ts'
import { UnreadableFile } from './unreadable.ts'
import type { ZipFile } from './zip.ts'

const container = 'META-INF/container.xml'
const encryption = 'META-INF/encryption.xml'

/** The chapters of a book in reading order, as Markdown. */
export function readEpub(zip: ZipFile, gaps: Gaps): string {
  const chapters = chaptersOf(zip, packageOf(zip))
  const locked = encryptedParts(zip)
  if (chapters.some((path) => locked.has(path))) throw new UnreadableFile('encrypted')
  const texts = chapters.map((path) => {
    if (!zip.has(path)) gaps.add('parts_skipped', { place: path.slice(0, 100) })
    return zip.has(path) ? htmlToText(withoutTitle(decodeText(zip.read(path))), gaps) : ''
  })
  return texts.filter((text) => text !== '').join('\n\n')
}

/** The title of a chapter repeats its heading. */
function withoutTitle(html: string): string {
  return html.replace(/<title\b[^>]*>[^<]*<\/title>/i, '')
}

function packageOf(zip: ZipFile): string {
  let path = ''
  readXml(zip.read(container), {
    open({ name, attributes }) {
      if (name === 'rootfile' && path === '') path = attributes['full-path'] ?? ''
    },
  })
  return path
}

function chaptersOf(zip: ZipFile, packagePath: string): string[] {
  const pathById = new Map<string, string>()
  const chapters: string[] = []
  readXml(zip.read(packagePath), {
    open({ name, attributes }) {
      const { id = '', href = '', idref = '', properties = '' } = attributes
      const isChapter = /html/.test(attributes['media-type'] ?? '')
      // The table of contents repeats the headings.
      if (name === 'item' && isChapter && !properties.split(' ').includes('nav')) {
        const { pathname } = new URL(href, `zip:///${packagePath}`)
        pathById.set(id, decodeURIComponent(pathname.slice(1)))
      }
      const path = name === 'itemref' ? pathById.get(idref) : undefined
      if (path !== undefined) chapters.push(path)
    },
  })
  return chapters
}

/** Fonts may be obfuscated in a book that is readable. */
function encryptedParts(zip: ZipFile): ReadonlySet<string> {
  const paths = new Set<string>()
  if (!zip.has(encryption)) return paths
  readXml(zip.read(encryption), {
    open({ name, attributes }) {
      if (name === 'CipherReference') paths.add(decodeURIComponent(attributes['URI'] ?? ''))
    },
  })
  return paths
}
