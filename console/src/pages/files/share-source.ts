import { call } from '../../api/call.ts'
import type { Principal, Share } from '../../api/generated/types.ts'

export type ShareRole = Share['role']

/** Where the shares of something are kept. */
export type ShareSource = {
  readonly id: string
  readonly name: string
  list(signal: AbortSignal): Promise<readonly Share[]>
  create(principal: Principal, role: ShareRole): Promise<unknown>
  change(shareId: string, role: ShareRole): Promise<unknown>
  remove(shareId: string): Promise<unknown>
}

const principalOf = ({ type, id }: Principal) => (type === 'everyone' ? { type } : { type, id })

export function fileShares({ id, name }: { id: string; name: string }): ShareSource {
  const path = { file_id: id }
  const one = (shareId: string) => ({ ...path, share_id: shareId })
  return {
    id,
    name,
    list: async (signal) => (await call('GET /v1/files/{file_id}/shares', { path, signal })).data,
    create: (principal, role) =>
      call('POST /v1/files/{file_id}/shares', {
        path,
        body: { principal: principalOf(principal), role },
      }),
    change: (shareId, role) =>
      call('PATCH /v1/files/{file_id}/shares/{share_id}', { path: one(shareId), body: { role } }),
    remove: (shareId) =>
      call('DELETE /v1/files/{file_id}/shares/{share_id}', { path: one(shareId) }),
  }
}

export function folderShares({ id, name }: { id: string; name: string }): ShareSource {
  const path = { folder_id: id }
  const one = (shareId: string) => ({ ...path, share_id: shareId })
  return {
    id,
    name,
    list: async (signal) =>
      (await call('GET /v1/folders/{folder_id}/shares', { path, signal })).data,
    create: (principal, role) =>
      call('POST /v1/folders/{folder_id}/shares', {
        path,
        body: { principal: principalOf(principal), role },
      }),
    change: (shareId, role) =>
      call('PATCH /v1/folders/{folder_id}/shares/{share_id}', {
        path: one(shareId),
        body: { role },
      }),
    remove: (shareId) =>
      call('DELETE /v1/folders/{folder_id}/shares/{share_id}', { path: one(shareId) }),
  }
}

export function collectionShares({ id, name }: { id: string; name: string }): ShareSource {
  const path = { name: id }
  const one = (shareId: string) => ({ ...path, share_id: shareId })
  return {
    id,
    name,
    list: async (signal) =>
      (await call('GET /v1/collections/{name}/shares', { path, signal })).data,
    create: (principal, role) =>
      call('POST /v1/collections/{name}/shares', {
        path,
        body: { principal: principalOf(principal), role },
      }),
    change: (shareId, role) =>
      call('PATCH /v1/collections/{name}/shares/{share_id}', {
        path: one(shareId),
        body: { role },
      }),
    remove: (shareId) =>
      call('DELETE /v1/collections/{name}/shares/{share_id}', { path: one(shareId) }),
  }
}
