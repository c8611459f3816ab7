import { json, operation } from '#docs/operation.ts'
import { type CallerRecord, callerRecord } from './schema.ts'

const caller: CallerRecord = {
  id: '5f2b1c9e-7a34-8d60-9e11-c4a8b7d20f35',
  object: 'user',
  kind: 'user',
  subject: 'ann@example.org',
  name: 'Ann Example',
  groups: [{ id: 'users', name: 'users' }],
  permissions: ['can_access_api'],
  auth: 'jwt',
  api_key_id: null,
}

export const meOperations = {
  find: operation({
    tag: 'Directory',
    summary: 'Show who you are',
    description: 'Whose credential this is, and what it allows.',
    answers: { 200: { description: 'You.', content: json(callerRecord, caller) } },
  }),
}
