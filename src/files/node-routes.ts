import { readJsonBody } from '#http/body.ts'
import { withCurrentTag } from '#http/precondition.ts'
import { entityTag, readIfMatch } from '#lib/entity-tag.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { NodeView } from './files.ts'
import type { NodeDeleted, NodeRecord } from './record.ts'
import { renderNode } from './render.ts'
import { type ReadChange, readRemoval, readRestore } from './schema.ts'
import { type NodeKind, nodeNotFound } from './tree/checks.ts'
import type { Files } from './tree.ts'

type Answering = {
  readonly principal: RequestPrincipal
  readonly params: { readonly id: string }
  readonly request: Request
  readonly set: { headers: Record<string, string | number> }
}

type BodyLimits = Parameters<typeof readJsonBody>[1]

/** What is done with files and with folders in the same way. */
export function nodeAnswers(kind: NodeKind, files: Files, limits: BodyLimits) {
  const find = async (caller: RequestPrincipal, id: string): Promise<NodeView> =>
    kind === 'file' ? files.find(caller, id) : (await files.findFolder(caller, id)).folder
  /** Who is refused by the version of what they want to change is told the one that there is. */
  const unlessStale = <T>({ principal, set }: Answering, id: string, work: () => Promise<T>) =>
    withCurrentTag(set, async () => versionOf(await find(principal, id)), work)
  return {
    /** The id of a path; what is no id is not found. */
    idOf: (params: { id: string }) => nodeId(kind, params),

    async change(asked: Answering, read: (body: unknown) => ReadChange): Promise<NodeRecord> {
      const { principal, params, request, set } = asked
      const id = nodeId(kind, params)
      // What is wrong with a body is told to nobody who may not see what it is about.
      await find(principal, id)
      const change = read(await readJsonBody(request, limits))
      const ifVersion = readIfMatch(request.headers.get('if-match'))
      const changed = await unlessStale(asked, id, () =>
        files.change(principal, { kind, id }, { ...change, ifVersion }),
      )
      return tagged(changed, set)
    },

    async restore({ principal, params, request, set }: Answering): Promise<NodeRecord> {
      const id = nodeId(kind, params)
      const how = readRestore(request.body === null ? {} : await readJsonBody(request, limits))
      return tagged(await files.restore(principal, { kind, id }, how), set)
    },

    async remove(asked: Answering & { readonly query: unknown }): Promise<NodeDeleted> {
      const { principal, params, request, query } = asked
      const id = nodeId(kind, params)
      const { isRecursive, isPermanent } = readRemoval(kind, query)
      const ifVersion = readIfMatch(request.headers.get('if-match'))
      if (isPermanent) {
        await unlessStale(asked, id, () => files.deleteFile(principal, { id, ifVersion }))
        return { id, object: kind, deleted: true }
      }
      const removed = await unlessStale(asked, id, () =>
        files.remove(principal, { kind, id }, { isRecursive, ifVersion }),
      )
      return { id, object: kind, deleted: true, ...(kind === 'folder' ? removed : {}) }
    },
  }
}

/** The record, with its version as a header. */
export function tagged(node: NodeView, set: Answering['set']): NodeRecord {
  set.headers['etag'] = entityTag(versionOf(node))
  return renderNode(node)
}

/** As its tag has it. */
export function versionOf({ version }: Pick<NodeView, 'version'>): string {
  return String(version)
}

export function nodeId(kind: NodeKind, { id }: { id: string }): string {
  if (isUuid(id)) return id.toLowerCase()
  throw nodeNotFound(kind, id)
}
