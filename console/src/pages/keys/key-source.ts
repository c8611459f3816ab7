import { call, type RequestOf } from '../../api/call.ts'
import type { ApiKey, CreatedApiKey } from '../../api/generated/types.ts'

export type KeyChange = RequestOf<'POST /v1/api-keys'>['body']

/** The keys of one owner: of the user, of everybody, or of a service account. */
export type KeySource = {
  readonly id: string
  list(
    page: { after?: string; limit: number },
    signal: AbortSignal,
  ): Promise<{ data: ApiKey[]; has_more: boolean; last_id: string | null }>
  create(body: KeyChange): Promise<CreatedApiKey>
  update(id: string, body: Partial<KeyChange>): Promise<unknown>
  rotate(id: string): Promise<CreatedApiKey>
  remove(id: string): Promise<unknown>
}

export function ownKeys(owner: 'me' | 'all'): KeySource {
  const query = owner === 'all' ? { user_id: 'all' } : {}
  return {
    id: owner,
    list: (page, signal) => call('GET /v1/api-keys', { query: { ...page, ...query }, signal }),
    create: (body) => call('POST /v1/api-keys', { body }),
    update: (id, body) =>
      call('PATCH /v1/api-keys/{api_key_id}', { path: { api_key_id: id }, body }),
    rotate: (id) =>
      call('POST /v1/api-keys/{api_key_id}/rotate', { path: { api_key_id: id }, body: {} }),
    remove: (id) => call('DELETE /v1/api-keys/{api_key_id}', { path: { api_key_id: id } }),
  }
}

export function serviceAccountKeys(account: string): KeySource {
  const path = { service_account_id: account }
  const keyPath = (id: string) => ({ ...path, key_id: id })
  return {
    id: account,
    list: (query, signal) =>
      call('GET /v1/service-accounts/{service_account_id}/api-keys', { path, query, signal }),
    create: (body) =>
      call('POST /v1/service-accounts/{service_account_id}/api-keys', { path, body }),
    update: (id, body) =>
      call('PATCH /v1/service-accounts/{service_account_id}/api-keys/{key_id}', {
        path: keyPath(id),
        body,
      }),
    rotate: (id) =>
      call('POST /v1/service-accounts/{service_account_id}/api-keys/{key_id}/rotate', {
        path: keyPath(id),
        body: {},
      }),
    remove: (id) =>
      call('DELETE /v1/service-accounts/{service_account_id}/api-keys/{key_id}', {
        path: keyPath(id),
      }),
  }
}
