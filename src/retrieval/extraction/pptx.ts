import { type DocumentText, joinPages, tableRow } from './document-text.ts'
import { relatedParts, relationId } from './package-parts.ts'
import { UnreadableFile } from './unreadable.ts'
import { readXml } from './xml.ts'
import type { ZipFile } from './zip.ts'

const presentation = 'ppt/presentation.xml'

/** The slides in their order, each a page, with the notes of the speaker below. */
export function readPptx(zip: ZipFile): DocumentText {
  const parts = relatedParts(zip, presentation)
  const slides: string[] = []
  readXml(zip.read(presentation), {
    open({ name, attributes }) {
      if (name !== 'sldId') return
      const slide = parts.get(relationId(attributes))
      if (slide === undefined) throw new UnreadableFile('invalid_file')
      slides.push(slide.path)
    },
  })
  return joinPages(slides.map((slide) => readSlide(zip, slide)))
}

function readSlide(zip: ZipFile, slide: string): string {
  const notes = [...relatedParts(zip, slide).values()].find(({ kind }) => kind === 'notesSlide')
  const said = readShapes(zip.read(slide))
  const noted = notes === undefined ? '' : readShapes(zip.read(notes.path))
  return noted === '' ? said : `${said}\n\n${noted}`
}

/** Placeholders that repeat on every slide and say nothing. */
const dullPlaceholders: ReadonlySet<string> = new Set(['sldNum', 'dt', 'ftr', 'hdr', 'sldImg'])

function readShapes(bytes: Uint8Array): string {
  const blocks: string[] = []
  let paragraph: string | null = null
  let placeholder = ''
  let cells: string[] | null = null
  let isText = false
  const endParagraph = () => {
    const text = paragraph?.trim() ?? ''
    paragraph = null
    if (text === '' || dullPlaceholders.has(placeholder)) return
    if (cells !== null && cells.length > 0) cells.push(`${cells.pop()} ${text}`)
    else blocks.push(/title$/i.test(placeholder) ? `## ${text}` : text)
  }
  readXml(bytes, {
    open({ name, attributes }) {
      if (name === 'sp') placeholder = ''
      else if (name === 'ph') placeholder = attributes['type'] ?? ''
      else if (name === 'p') paragraph = ''
      else if (name === 'tr') cells = []
      else if (name === 'tc') cells?.push('')
      else if (name === 't') isText = true
      else if ((name === 'br' || name === 'tab') && paragraph !== null) paragraph += ' '
    },
    text(text) {
      if (isText && paragraph !== null) paragraph += text
    },
    close(name) {
      if (name === 't') isText = false
      else if (name === 'p') endParagraph()
      else if (name === 'tr' && cells !== null) {
        blocks.push(tableRow(cells))
        cells = null
      }
    },
  })
  return blocks.join('\n')
}
