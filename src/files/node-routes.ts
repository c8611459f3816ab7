import { isUuid } from '#auth/schema.ts'
import { readJsonBody } from '#http/body.ts'
import type { Caller, NodeView } from './files.ts'
import { renderNode } from './render.ts'
import { type ReadChange, readRemoval, readRestore } from './schema.ts'
import { absent, type Kind } from './tree/place.ts'
import type { Files } from './tree.ts'
import { readIfMatch, versionTag } from './versions.ts'

type Asked = {
  readonly principal: Caller
  readonly params: { readonly id: string }
  readonly request: Request
}

type Answering = Asked & { readonly set: { headers: Record<string, string | number> } }

type BodyLimits = Parameters<typeof readJsonBody>[1]

/** What is done with files and with folders in the same way. */
export function nodeAnswers(kind: Kind, files: Files, limits: BodyLimits) {
  return {
    /** The id of a path; what is no id is not found. */
    idOf: (params: { id: string }) => nodeId(kind, params),

    async change(
      { principal, params, request, set }: Answering,
      read: (body: unknown) => ReadChange,
    ) {
      const id = nodeId(kind, params)
      // What is wrong with a body is told to nobody who may not see what it is about.
      await (kind === 'file' ? files.find(principal, id) : files.findFolder(principal, id))
      const change = read(await readJsonBody(request, limits))
      const ifVersion = readIfMatch(request.headers.get('if-match'))
      return tagged(await files.change(principal, { kind, id }, { ...change, ifVersion }), set)
    },

    async restore({ principal, params, request, set }: Answering) {
      const id = nodeId(kind, params)
      const how = readRestore(request.body === null ? {} : await readJsonBody(request, limits))
      return tagged(await files.restore(principal, { kind, id }, how), set)
    },

    async remove({ principal, params, request, query }: Asked & { readonly query: unknown }) {
      const id = nodeId(kind, params)
      const { isRecursive, isPermanent } = readRemoval(kind, query)
      const ifVersion = readIfMatch(request.headers.get('if-match'))
      if (isPermanent) {
        await files.deleteFile(principal, { id, ifVersion })
        return { id, object: kind, deleted: true }
      }
      const removed = await files.remove(principal, { kind, id }, { isRecursive, ifVersion })
      return { id, object: kind, deleted: true, ...(kind === 'folder' ? removed : {}) }
    },
  }
}

/** The record, with its version as a header. */
export function tagged(node: NodeView, set: { headers: Record<string, string | number> }) {
  set.headers['etag'] = versionTag(node.version)
  return renderNode(node)
}

export function nodeId(kind: Kind, { id }: { id: string }): string {
  if (isUuid(id)) return id.toLowerCase()
  throw absent(kind, id)
}
