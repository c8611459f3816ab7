import { followSignal } from '#lib/deadline.ts'
import { isAllowedType, unsafeFile } from './file-types.ts'
import { dropBody, type Origin, tookTooLong } from './origin.ts'
import { checkPath } from './paths.ts'
import { refusalOf } from './refusal.ts'
import { badSource } from './select-files.ts'
import type { Resolved, Source, SourceContext } from './source.ts'
import { strongEtag } from './validator.ts'

type UrlSource = Extract<Source, { kind: 'url' }>

const urlCharsMax = 4_096
/** What servers answer that know no HEAD, or sign their URLs for GET alone. */
const headRefused = new Set([400, 401, 403, 404, 405, 501])

/** The one file that a URL leads to. */
export async function resolveUrl(
  { origin, settings }: { origin: Origin; settings: { readonly answerMs: number } },
  source: UrlSource,
  { signal, say, allowsUnsafe }: SourceContext,
): Promise<Resolved> {
  const { sha256 } = source
  const url = URL.parse(source.url)
  if (url === null || source.url.length > urlCharsMax) throw badSource('The source is no URL.')
  if (sha256 !== null && !/^[0-9a-f]{64}$/i.test(sha256)) throw badSource('The sha256 is none.')
  const headers = await headersOf(origin, { url, signal, limitMs: settings.answerMs })
  const path = checkPath(nameOfFile(headers, url))
  if (!isAllowedType(path, allowsUnsafe)) throw unsafeFile(path)
  if (sha256 === null) say('warn', 'Nobody vouches for this file: its sha256 is not given.')
  const file = { path, bytes: lengthOf(headers), sha256: sha256?.toLowerCase() ?? null }
  return { revision: strongEtag(headers), files: [{ ...file, from: { url: source.url } }] }
}

type Question = { url: URL; signal: AbortSignal; limitMs: number }

/** By HEAD where the server takes it, else by asking for the first byte; the body is not read. */
async function headersOf(origin: Origin, { url, signal, limitMs }: Question): Promise<Headers> {
  const { controller, release } = followSignal(signal)
  const timer = setTimeout(() => controller.abort(tookTooLong()), limitMs)
  const ask = async (method: 'HEAD' | 'GET', headers: Record<string, string>) => {
    const { response } = await origin.open(url, { method, headers, signal: controller.signal })
    dropBody(response)
    return response
  }
  try {
    const head = await ask('HEAD', {})
    if (head.ok) return head.headers
    if (!headRefused.has(head.status)) throw refusalOf(head)
    const first = await ask('GET', { range: 'bytes=0-0' })
    if (first.ok) return first.headers
    throw refusalOf(first)
  } finally {
    clearTimeout(timer)
    release()
    controller.abort()
  }
}

/** Of the whole file, also where only its first byte was asked for. */
function lengthOf(headers: Headers): number | null {
  const range = headers.get('content-range')
  const length = range === null ? headers.get('content-length') : range.replace(/^.*\//, '')
  return length !== null && /^\d{1,15}$/.test(length) ? Number(length) : null
}

/** What the server calls it, else the last part of the path. Folders in a name are left out. */
function nameOfFile(headers: Headers, url: URL): string {
  const told = nameInDisposition(headers.get('content-disposition') ?? '')
  const name = told ?? decoded(url.pathname)
  return name.split(/[/\\]/).findLast((part) => part !== '') ?? ''
}

/** `attachment; filename="a.gguf"; filename*=UTF-8''a.gguf` */
function nameInDisposition(text: string): string | null {
  const extended = /;\s*filename\*\s*=\s*utf-8''([^;\s]+)/i.exec(text)?.[1]
  if (extended !== undefined) return decoded(extended)
  const plain = /;\s*filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(text)
  if (plain === null) return null
  return plain[1]?.replace(/\\(.)/g, '$1') ?? plain[2] ?? null
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
