import { AppError } from '#lib/errors.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { type HubFile, type HubRepository, listFiles, lookUpFile } from './hub-files.ts'
import { askJson } from './json-answer.ts'
import type { Origin } from './origin.ts'
import { checkPath } from './paths.ts'
import { refusalOf } from './refusal.ts'
import { badSource, noFiles, refuseManyQuantisations, selectFiles } from './select-files.ts'
import type { RemoteFile, Resolved, Source, SourceContext } from './source.ts'

type HubSource = Extract<Source, { kind: 'hub' }>
type HubSettings = {
  readonly hubUrl: string
  readonly hubToken?: string
  readonly filesMax: number
}

const repositoryName = /^[A-Za-z0-9][\w.-]{0,95}(?:\/[A-Za-z0-9][\w.-]{0,95})?$/
const commitHash = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/
const revisionCharsMax = 256
/** Files that are looked up at a time, where the hub does not list what they are. */
const lookUpsAtOnce = 4

/** The files of a repository at the commit that a branch or tag means now. */
export async function resolveHub(
  { settings, origin }: { settings: HubSettings; origin: Origin },
  source: HubSource,
  context: SourceContext,
): Promise<Resolved> {
  const { signal, say } = context
  const { repository: name, revision: asked } = source
  if (!repositoryName.test(name)) throw badSource('A repository is called "name" or "org/name".')
  if (asked === '' || asked.length > revisionCharsMax) throw badSource('The revision is none.')
  const hubUrl = settings.hubUrl.replace(/\/+$/, '')
  const path = `/api/models/${name}/revision/${encodeURIComponent(asked)}`
  const answer = await askJson(origin, new URL(`${hubUrl}${path}`), { signal })
  if (answer.status !== 200) throw refusalOf(answer)
  const info = asRecord(answer.value)
  refuseGated(info, settings.hubToken)
  const repository: HubRepository = { hubUrl, name, commit: commitOf(info) }
  say('info', `${name} at ${asked} is commit ${repository.commit.slice(0, 12)}.`)
  const offered = await listFiles(origin, { repository, info, signal })
  if (offered.length === 0) throw noFiles('The repository is empty.')
  const selected = selectFiles(offered, source.files, context)
  if (source.files.length === 0) refuseManyQuantisations(selected)
  if (selected.length > settings.filesMax) {
    throw badSource(`${selected.length} files are meant; ${settings.filesMax} are allowed.`)
  }
  const known = await lookUpAll(selected, (file) => lookUpFile(origin, repository, file, signal))
  return {
    revision: repository.commit,
    files: known.map((file) => remoteFile(file, repository)),
  }
}

/** What needs an acceptance, and so a credential, is known before its first byte is asked for. */
function refuseGated(info: JsonObject, hubToken: string | undefined): void {
  const isGated = info['gated'] !== undefined && info['gated'] !== false
  if (!isGated || hubToken !== undefined) return
  throw new AppError(
    'source_auth_required',
    'The repository is gated: its terms must be accepted on the hub, and hub_token be set here.',
  )
}

function commitOf(info: JsonObject): string {
  const commit = info['sha']
  if (typeof commit === 'string' && commitHash.test(commit)) return commit
  throw new AppError('upstream_invalid_answer', 'The hub does not say which commit it means.')
}

function remoteFile(file: HubFile, { hubUrl, name, commit }: HubRepository): RemoteFile {
  const place = file.path.split('/').map(encodeURIComponent).join('/')
  return {
    path: checkPath(file.path),
    bytes: file.bytes,
    sha256: file.sha256,
    ...(file.gitSha1 === null ? {} : { gitSha1: file.gitSha1 }),
    from: { url: `${hubUrl}/${name}/resolve/${commit}/${place}` },
  }
}

async function lookUpAll(
  files: readonly HubFile[],
  lookUp: (file: HubFile) => Promise<HubFile>,
): Promise<readonly HubFile[]> {
  const found: HubFile[] = []
  for (let at = 0; at < files.length; at += lookUpsAtOnce) {
    found.push(...(await Promise.all(files.slice(at, at + lookUpsAtOnce).map(lookUp))))
  }
  return found
}
