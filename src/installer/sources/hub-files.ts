import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { askJson } from './json-answer.ts'
import type { Origin } from './origin.ts'
import { refusalOf } from './refusal.ts'

export type HubRepository = {
  readonly hubUrl: string
  readonly name: string
  readonly commit: string
}

export type HubFile = {
  readonly path: string
  readonly bytes: number | null
  /** Of large files. */
  readonly sha256: string | null
  /** Of the others: the hash of git, which is over a head and the content. */
  readonly gitSha1: string | null
}

/** Of a list of files, 1,000 files each. */
const pagesMax = 100
/** A mirror may have no list of files with their hashes. */
const withoutTree = new Set([404, 405, 501])

/** What a repository holds at its commit, as far as the hub tells it in its lists. */
export async function listFiles(
  origin: Origin,
  asked: { repository: HubRepository; info: JsonObject; signal: AbortSignal },
): Promise<readonly HubFile[]> {
  const { repository, info, signal } = asked
  const { hubUrl, name, commit } = repository
  const first = new URL(`${hubUrl}/api/models/${name}/tree/${commit}?recursive=true`)
  const files: HubFile[] = []
  let next: URL | null = first
  for (let pages = 0; next !== null; pages++) {
    if (pages === pagesMax) throw invalidList()
    const answer = await askJson(origin, next, { signal })
    if (pages === 0 && withoutTree.has(answer.status)) return namesAlone(info)
    if (answer.status !== 200) throw refusalOf(answer)
    if (!Array.isArray(answer.value)) throw invalidList()
    files.push(...answer.value.filter(isRecord).flatMap(readEntry))
    next = nextPage(answer.headers.get('link') ?? '', next)
  }
  return files
}

/** Asks for the head of a file of which the lists did not say what it is. */
export async function lookUpFile(
  origin: Origin,
  { hubUrl, name, commit }: HubRepository,
  file: HubFile,
  signal: AbortSignal,
): Promise<HubFile> {
  if (file.bytes !== null) return file
  const place = file.path.split('/').map(encodeURIComponent).join('/')
  const url = new URL(`${hubUrl}/${name}/resolve/${commit}/${place}`)
  const asked = { method: 'HEAD', takesRedirect: true, bytesMax: 0, signal } as const
  const answer = await origin.read(url, asked)
  const { status, headers } = answer
  if (status >= 400) throw refusalOf(answer)
  const hash = unquoted(headers.get('x-linked-etag') ?? '')
  const gitHash = unquoted(headers.get('etag') ?? '')
  // What is elsewhere has its length said beside the redirect, which is as long as its own text.
  const length =
    headers.get('x-linked-size') ?? (status < 300 ? headers.get('content-length') : null)
  return {
    path: file.path,
    bytes: length !== null && /^\d+$/.test(length) ? Number(length) : null,
    sha256: isSha256(hash) ? hash : null,
    gitSha1: !isSha256(hash) && status < 300 && isSha1(gitHash) ? gitHash : null,
  }
}

function readEntry(entry: JsonObject): HubFile[] {
  const { type, path, size, oid } = entry
  if (type !== 'file' || typeof path !== 'string') return []
  const large = asRecord(entry['lfs'])
  const isLarge = typeof large['oid'] === 'string'
  const hash = String(large['oid'] ?? '').replace(/^sha256:/, '')
  const bytes = large['size'] ?? size
  return [
    {
      path,
      bytes: Number.isSafeInteger(bytes) ? Number(bytes) : null,
      sha256: isLarge && isSha256(hash) ? hash : null,
      gitSha1: !isLarge && typeof oid === 'string' && isSha1(oid) ? oid : null,
    },
  ]
}

function namesAlone(info: JsonObject): readonly HubFile[] {
  const siblings: unknown = info['siblings']
  if (!Array.isArray(siblings)) throw invalidList()
  return siblings.flatMap((sibling) => {
    const path = asRecord(sibling)['rfilename']
    return typeof path === 'string' ? [{ path, bytes: null, sha256: null, gitSha1: null }] : []
  })
}

/** `<https://hub/api/…?cursor=…>; rel="next"`; only the hub itself has more of its list. */
function nextPage(link: string, from: URL): URL | null {
  const target = /<([^>]*)>\s*;[^,]*rel="?next\b/.exec(link)?.[1]
  const next = target === undefined ? null : URL.parse(target, from.href)
  return next?.origin === from.origin ? next : null
}

function unquoted(etag: string): string {
  return etag.replace(/^(?:W\/)?"(.*)"$/, '$1')
}

function isSha256(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text)
}

function isSha1(text: string): boolean {
  return /^[0-9a-f]{40}$/.test(text)
}

function invalidList(): AppError {
  return new AppError('upstream_invalid_answer', 'The list of files of the hub cannot be read.')
}
