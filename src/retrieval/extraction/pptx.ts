import { type DocumentText, joinPages, tableRow } from './document-text.ts'
import type { Gaps } from './gaps.ts'
import { countSkipped, readChart, readXml, relatedParts, relationId } from './office-xml.ts'
import { UnreadableFile } from './unreadable.ts'
import type { ZipFile } from './zip.ts'

const presentation = 'ppt/presentation.xml'

/** One page per slide, with the speaker notes after its text. */
export function readPptx(zip: ZipFile, gaps: Gaps): DocumentText {
  countSkipped(zip, gaps)
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
  const parts = [...relatedParts(zip, slide).values()].filter(({ path }) => zip.has(path))
  const textsOf = (wanted: string, read: (bytes: Uint8Array) => string) =>
    parts.flatMap(({ kind, path }) => (kind === wanted ? [read(zip.read(path))] : []))
  const charts = textsOf('chart', readChart)
  const diagrams = textsOf('diagramData', readShapes)
  const notes = textsOf('notesSlide', readShapes).slice(0, 1)
  return [readShapes(zip.read(slide)), ...diagrams, ...charts, ...notes]
    .filter((text) => text !== '')
    .join('\n\n')
}

/** Placeholders repeated on every slide. */
const ignoredPlaceholders: ReadonlySet<string> = new Set(['sldNum', 'dt', 'ftr', 'hdr', 'sldImg'])

function readShapes(bytes: Uint8Array): string {
  const blocks: string[] = []
  let paragraph: string | null = null
  let placeholder = ''
  let cells: string[] | null = null
  let isText = false
  const endParagraph = () => {
    const text = paragraph?.trim() ?? ''
    paragraph = null
    if (text === '' || ignoredPlaceholders.has(placeholder)) return
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
