import type { InstallerSettings } from '#installer/config.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { validatePath } from './file-rules.ts'
import type { Origin } from './origin.ts'
import { fetchJson, statusError } from './origin-response.ts'
import { badSource, noFiles, requireOneQuantisation, selectFiles } from './select-files.ts'
import type { RemoteFile, ResolvedSource, Source, SourceContext } from './source.ts'

type HubSource = Extract<Source, { kind: 'hub' }>

type HubRepository = { readonly hubUrl: string; readonly name: string; readonly commit: string }

type HubFile = {
  readonly path: string
  readonly bytes: number | null
  /** Of large files. */
  readonly sha256: string | null
  /** Of other files: the hash of the git object. */
  readonly gitSha1: string | null
}

const repositoryName = /^[A-Za-z0-9][\w.-]{0,95}(?:\/[A-Za-z0-9][\w.-]{0,95})?$/
const commitHash = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/
const revisionCharsMax = 256
/** Pages of 1,000 files. */
const pagesMax = 100
/** Responses of mirrors that do not list files with hashes. */
const noTreeStatuses = new Set([404, 405, 501])
const concurrentLookups = 4

/** The files of a repository at the commit of a branch or tag. */
export async function resolveHub(
  { settings, origin }: { settings: InstallerSettings; origin: Origin },
  source: HubSource,
  context: SourceContext,
): Promise<ResolvedSource> {
  const { signal, logLine } = context
  const { repository: name, revision } = source
  if (!repositoryName.test(name)) throw badSource('A repository is named "name" or "org/name".')
  if (revision === '' || revision.length > revisionCharsMax) {
    throw badSource('The revision is invalid.')
  }
  const hubUrl = settings.hubUrl.replace(/\/+$/, '')
  const path = `/api/models/${name}/revision/${encodeURIComponent(revision)}`
  const url = new URL(`${hubUrl}${path}`)
  const response = await fetchJson(origin, url, { signal })
  if (response.status !== 200) {
    throw statusError(response, origin.place(url), `the repository ${name} at ${revision}`)
  }
  const info = asRecord(response.value)
  rejectGated(info, settings.hubToken)
  const repository: HubRepository = { hubUrl, name, commit: commitOf(info) }
  logLine('info', `${name} at ${revision} is commit ${repository.commit.slice(0, 12)}.`)
  const listed = await listFiles(origin, { repository, info, signal })
  if (listed.length === 0) throw noFiles('The repository is empty.')
  const selected = selectFiles(listed, source.files, context)
  if (source.files.length === 0) requireOneQuantisation(selected)
  if (selected.length > settings.filesMax) {
    throw badSource(`${selected.length} files match; the limit is ${settings.filesMax}.`)
  }
  const files: HubFile[] = []
  for (let at = 0; at < selected.length; at += concurrentLookups) {
    const some = selected.slice(at, at + concurrentLookups)
    const found = some.map((file) => withDetails(origin, repository, file, signal))
    files.push(...(await Promise.all(found)))
  }
  return {
    revision: repository.commit,
    files: files.map((file) => remoteFile(file, repository)),
  }
}

/** Fails before the first byte if the hub requires accepted terms, and so a token. */
function rejectGated(info: JsonObject, hubToken: string | undefined): void {
  const isGated = info['gated'] !== undefined && info['gated'] !== false
  if (!isGated || hubToken !== undefined) return
  throw new AppError(
    'source_auth_required',
    'The repository is gated: accept its terms on the hub and configure installer.hub_token.',
  )
}

function commitOf(info: JsonObject): string {
  const commit = info['sha']
  if (typeof commit === 'string' && commitHash.test(commit)) return commit
  throw new AppError('upstream_invalid_answer', 'The response of the hub has no commit.')
}

function remoteFile(file: HubFile, repository: HubRepository): RemoteFile {
  return {
    path: validatePath(file.path),
    bytes: file.bytes,
    sha256: file.sha256,
    ...(file.gitSha1 === null ? {} : { gitSha1: file.gitSha1 }),
    from: { url: fileUrl(repository, file.path) },
  }
}

function fileUrl({ hubUrl, name, commit }: HubRepository, path: string): string {
  const encoded = path.split('/').map(encodeURIComponent).join('/')
  return `${hubUrl}/${name}/resolve/${commit}/${encoded}`
}

/** The files of a repository at its commit, with the details that the hub lists. */
async function listFiles(
  origin: Origin,
  given: { repository: HubRepository; info: JsonObject; signal: AbortSignal },
): Promise<readonly HubFile[]> {
  const { repository, info, signal } = given
  const { hubUrl, name, commit } = repository
  const files: HubFile[] = []
  let next: URL | null = new URL(`${hubUrl}/api/models/${name}/tree/${commit}?recursive=true`)
  for (let pages = 0; next !== null; pages++) {
    if (pages === pagesMax) throw invalidList()
    const response = await fetchJson(origin, next, { signal })
    if (pages === 0 && noTreeStatuses.has(response.status)) return filesOfInfo(info)
    if (response.status !== 200) throw statusError(response, origin.place(next))
    if (!Array.isArray(response.value)) throw invalidList()
    files.push(...response.value.filter(isRecord).flatMap(readEntry))
    next = nextPage(response.headers.get('link') ?? '', next)
  }
  return files
}

/** Completes a file without details by a HEAD request. */
async function withDetails(
  origin: Origin,
  repository: HubRepository,
  file: HubFile,
  signal: AbortSignal,
): Promise<HubFile> {
  if (file.bytes !== null) return file
  const url = new URL(fileUrl(repository, file.path))
  const request = { method: 'HEAD', returnsRedirect: true, bytesMax: 0, signal } as const
  const response = await origin.read(url, request)
  const { status, headers } = response
  if (status >= 400) throw statusError(response, origin.place(url))
  const hash = unquoted(headers.get('x-linked-etag') ?? '')
  const gitHash = unquoted(headers.get('etag') ?? '')
  // Content-Length of a redirect is the length of its own body.
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

function filesOfInfo(info: JsonObject): readonly HubFile[] {
  const siblings: unknown = info['siblings']
  if (!Array.isArray(siblings)) throw invalidList()
  return siblings.flatMap((sibling) => {
    const path = asRecord(sibling)['rfilename']
    return typeof path === 'string' ? [{ path, bytes: null, sha256: null, gitSha1: null }] : []
  })
}

/** `<https://hub/api/…?cursor=…>; rel="next"`; links to other hosts are ignored. */
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
  return new AppError('upstream_invalid_answer', 'The file list of the hub is invalid.')
}
