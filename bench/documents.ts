import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { loadConfig } from '#config/load.ts'
import { createExtraction } from '#retrieval/extraction/extraction.ts'
import { StartError } from './support/children.ts'
import { formatTable } from './support/table.ts'

export const summary = 'Text of documents of other programs, compared with a reference extractor.'
export const usage = '[--python python3] [--from FOLDER] [--texts]'

/** Share of the reference's words that must be found, where the reference reads the file. */
const foundMin = 0.9
const legacyText = /\.(?:txt|csv|html)$/
const encodings: Readonly<Record<string, string>> = {
  'czech-cp1250.txt': 'cp1250',
  'russian-koi8.csv': 'koi8-r',
  'japanese-sjis.txt': 'shift_jis',
  'chinese-gb18030.html': 'gb18030',
}

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      python: { type: 'string', default: 'python3' },
      from: { type: 'string' },
      texts: { type: 'boolean', default: false },
    },
  })
  const scratch = mkdtempSync(join(tmpdir(), 'sluice-documents-'))
  try {
    const folder = values.from ?? join(scratch, 'made')
    const program = new URL('./documents/make.py', import.meta.url).pathname
    if (values.from === undefined) await output([values.python, program, folder])
    const log = { warn: () => {} }
    const extraction = createExtraction({ limits: loadConfig({}).retrieval, log })
    const rows: string[][] = []
    let isGood = true
    for (const name of readdirSync(folder).toSorted()) {
      const path = join(folder, name)
      const file = { name, mimeType: '', bytes: Bun.file(path).size }
      const open = async () => Bun.file(path).stream()
      const { text } = await extraction.extract(file, open, new AbortController().signal)
      const reference = await referenceOf(path, scratch)
      const [expected, found] = [wordsOf(reference.text), wordsOf(text)]
      const missing = expected.filter((word) => !found.includes(word))
      const share = expected.length === 0 ? 1 : 1 - missing.length / expected.length
      // In right-to-left text and with unembedded fonts the reference is at fault; see the words.
      isGood &&= share >= foundMin || name.endsWith('.pdf')
      const extra = found.filter((word) => !expected.includes(word))
      rows.push([
        name,
        reference.name,
        `${expected.length}`,
        `${Math.round(share * 100)} %`,
        shortList(missing),
        shortList(extra),
      ])
      if (values.texts)
        console.log(`== ${name}\n${text}\n-- ${reference.name}\n${reference.text}\n`)
    }
    const header = ['document', 'reference', 'words', 'found', 'only in the reference', 'only here']
    console.log(formatTable(header, rows))
    return isGood ? 0 : 1
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

async function referenceOf(path: string, scratch: string): Promise<{ name: string; text: string }> {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const encoding = encodings[name]
  if (encoding !== undefined && legacyText.test(name)) {
    return { name: 'iconv', text: await output(['iconv', '-f', encoding, '-t', 'utf-8', path]) }
  }
  if (name.endsWith('.pdf'))
    return { name: 'pdftotext', text: await output(['pdftotext', path, '-']) }
  if (name.endsWith('.epub'))
    return { name: 'unzip', text: await output(['unzip', '-p', path, '*chapter*']) }
  // Impress writes no text; its PDF is read instead.
  const isSlides = /\.(?:pptx|odp)$/.test(name)
  const target = isSlides
    ? 'pdf'
    : /\.(?:xlsx|ods)$/.test(name)
      ? 'csv:Text - txt - csv (StarCalc):44,34,76,1'
      : 'txt:Text (encoded):UTF8'
  await output(['soffice', '--headless', '--convert-to', target, '--outdir', scratch, path])
  const stem = name.slice(0, name.lastIndexOf('.'))
  const made = join(scratch, `${stem}.${target.slice(0, 3)}`)
  const text = isSlides ? await output(['pdftotext', made, '-']) : await Bun.file(made).text()
  return { name: 'LibreOffice', text }
}

async function output(command: readonly string[]): Promise<string> {
  const [program = ''] = command
  if (Bun.which(program) === null) throw new StartError(`${program} is not installed`)
  const child = Bun.spawn([...command], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [text, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  if ((await child.exited) !== 0) throw new StartError(`${program} failed: ${errors.slice(-500)}`)
  return text
}

/** Without markup, directional marks and presentation forms. */
function wordsOf(text: string): string[] {
  const plain = text
    .replace(/<[^>]*>/g, ' ')
    .normalize('NFKC')
    .replace(/[\u200e\u200f\u202a-\u202e]/g, ' ')
  return plain.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
}

function shortList(words: readonly string[]): string {
  const shown = words.slice(0, 6).join(' ')
  return words.length > 6 ? `${shown} … (${words.length})` : shown
}
