import { deleted, idExample, instantExample, listExample, listOf, pageQuery } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { apiKeyRecord, createdApiKey, createKeyBody } from './schema.ts'

const tag = 'API keys'
const made = {
  id: idExample,
  name: 'nightly report',
  masked: 'sk-svc-v1-****************4f2a',
  created_at: instantExample,
  expires_at: null,
}
const notOwn = 'You have no API key with this id.'

export const apiKeyOperations = {
  create: operation({
    tag,
    summary: 'Create an API key',
    description: 'Called with a JWT. The answer is the only one that ever holds the key itself.',
    body: { content: json(createKeyBody, { name: 'nightly report' }) },
    answers: {
      200: {
        description: 'The key.',
        content: json(createdApiKey, { ...made, key: 'sk-svc-v1-…' }),
      },
    },
    errors: {
      jwt_required: 'API keys are made with a token, not with an API key.',
      unprocessable: [
        '"name" must have 1 to 100 characters.',
        {
          code: 'too_many_api_keys',
          message: 'You have 100 API keys, which is the limit; delete one first.',
        },
      ],
    },
  }),
  list: operation({
    tag,
    summary: 'List your API keys',
    description: 'Newest first. Revoked keys are gone, expired ones are there.',
    query: pageQuery,
    answers: {
      200: {
        description: 'A page of keys.',
        content: json(listOf(apiKeyRecord), listExample({ ...made, last_used_at: null })),
      },
    },
    errors: { unprocessable: '"limit" must be a whole number from 1 to 100.' },
  }),
  revoke: operation({
    tag,
    summary: 'Revoke an API key',
    description: 'It stops working everywhere within a second.',
    path: { id: 'The id of the key.' },
    answers: {
      200: {
        description: 'It is revoked.',
        content: json(deleted('api_key.deleted'), {
          id: idExample,
          object: 'api_key.deleted',
          deleted: true,
        }),
      },
    },
    errors: { not_found: notOwn },
  }),
}
