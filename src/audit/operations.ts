import { idExample, instantExample, listExample, listOf } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { type AuditRecord, auditQuery, auditRecord } from './schema.ts'

const entry: AuditRecord = {
  id: idExample,
  object: 'audit_entry',
  created_at: instantExample,
  actor: { id: '5f2b1c9e-7a34-8d60-9e11-c4a8b7d20f35', api_key_id: null },
  action: 'group.update',
  resource: { type: 'group', id: 'editors' },
  changes: {
    before: { permissions: ['can_access_api'] },
    after: { permissions: ['can_access_api', 'can_edit_config'] },
  },
  request_id: 'req_0a1b2c3d4e5f6g7h8j9k0m1n2p',
}

export const auditOperations = {
  list: operation({
    tag: 'Directory',
    summary: 'List what administrators did',
    description:
      'Newest first. Entries are written in the same transaction as what they tell, hold no secrets, and are kept as long as the configuration says (`audit.keep_days`).',
    query: auditQuery,
    answers: {
      200: {
        description: 'A page of entries.',
        content: json(listOf(auditRecord), listExample(entry)),
      },
    },
    errors: {
      unprocessable: '"resource" must be a type, or a type and an id: group:editors.',
    },
  }),
}
