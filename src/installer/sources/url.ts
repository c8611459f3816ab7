import type { InstallerSettings } from '#installer/config.ts'
import { followSignal } from '#lib/deadline.ts'
import { percentDecoded } from '#lib/url.ts'
import { isAllowedType, unsafeFile, validatePath } from './file-rules.ts'
import { cancelBody, type Origin } from './origin.ts'
import { statusError, strongEtag } from './origin-response.ts'
import { badSource } from './select-files.ts'
import type { ResolvedSource, Source, SourceContext } from './source.ts'

type UrlSource = Extract<Source, { kind: 'url' }>

const urlCharsMax = 4_096
/** Statuses of servers that do not support HEAD, or sign their URLs for GET only. */
const noHeadStatuses = new Set([400, 401, 403, 404, 405, 501])

/** The file at a URL. */
export async function resolveUrl(
  { origin, settings }: { origin: Origin; settings: InstallerSettings },
  source: UrlSource,
  { signal, logLine, allowsUnsafe }: SourceContext,
): Promise<ResolvedSource> {
  const { sha256 } = source
  const url = URL.parse(source.url)
  if (url === null || source.url.length > urlCharsMax) throw badSource('The source is not a URL.')
  if (sha256 !== null && !/^[0-9a-f]{64}$/i.test(sha256)) throw badSource('The sha256 is invalid.')
  const headers = await headersOf(origin, { url, signal, limitMs: settings.answerMs })
  const path = validatePath(fileNameOf(headers, url))
  if (!isAllowedType(path, allowsUnsafe)) throw unsafeFile(path)
  if (sha256 === null) logLine('warn', 'No sha256 given: the file cannot be verified.')
  const file = { path, bytes: lengthOf(headers), sha256: sha256?.toLowerCase() ?? null }
  return { revision: strongEtag(headers), files: [{ ...file, from: { url: source.url } }] }
}

/** By HEAD if the server supports it, else by a GET of the first byte. The body is not read. */
async function headersOf(
  origin: Origin,
  { url, signal, limitMs }: { url: URL; signal: AbortSignal; limitMs: number },
): Promise<Headers> {
  const { controller, release } = followSignal(signal)
  const timer = setTimeout(() => controller.abort(origin.responseTimeout(url)), limitMs)
  const request = async (method: 'HEAD' | 'GET', headers: Record<string, string>) => {
    const { response } = await origin.open(url, { method, headers, signal: controller.signal })
    cancelBody(response)
    return response
  }
  try {
    const head = await request('HEAD', {})
    if (head.ok) return head.headers
    if (!noHeadStatuses.has(head.status)) throw statusError(head, origin.place(url))
    const first = await request('GET', { range: 'bytes=0-0' })
    if (first.ok) return first.headers
    throw statusError(first, origin.place(url))
  } finally {
    clearTimeout(timer)
    release()
    controller.abort()
  }
}

/** The length of the whole file, also from the response to a range request. */
function lengthOf(headers: Headers): number | null {
  const range = headers.get('content-range')
  const length = range === null ? headers.get('content-length') : range.replace(/^.*\//, '')
  return length !== null && /^\d{1,15}$/.test(length) ? Number(length) : null
}

/** The name in Content-Disposition, else the last segment of the path; without folders. */
function fileNameOf(headers: Headers, url: URL): string {
  const given = nameInDisposition(headers.get('content-disposition') ?? '')
  const name = given ?? percentDecoded(url.pathname)
  return name.split(/[/\\]/).findLast((part) => part !== '') ?? ''
}

/** `attachment; filename="a.gguf"; filename*=UTF-8''a.gguf` */
function nameInDisposition(text: string): string | null {
  const extended = /;\s*filename\*\s*=\s*utf-8''([^;\s]+)/i.exec(text)?.[1]
  if (extended !== undefined) return percentDecoded(extended)
  const plain = /;\s*filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(text)
  if (plain === null) return null
  return plain[1]?.replace(/\\(.)/g, '$1') ?? plain[2] ?? null
}
