import { deleted, idExample, instantExample, listExample, listOf, pageQuery } from '#api/shapes.ts'
import { apiKeyRecord, createdApiKey, createKeyBody } from '#auth/schema.ts'
import { serviceAccountExample } from '#directory/users/operations.ts'
import { userDetailsRecord } from '#directory/users/schema.ts'
import { json, operation } from '#docs/operation.ts'
import { createServiceAccountBody } from './schema.ts'
import { unknownGroupFailure } from './service-accounts.ts'

const tag = 'Directory'
const path = { id: 'The id of the service account.' }
const keyIdExample = '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61'
const absent = `There is no service account with the id "${idExample}".`
const key = {
  id: keyIdExample,
  name: 'import host',
  masked: 'sk-svc-v1-********4f2a',
  created_at: instantExample,
  expires_at: null,
}

export const serviceAccountOperations = {
  create: operation({
    tag,
    summary: 'Create a service account',
    description:
      'A user that is a program. It has API keys and no tokens, and is in the groups that it was given. `GET /v1/users?kind=service` lists them.',
    body: {
      content: json(createServiceAccountBody, { name: 'nightly import', groups: ['users'] }),
    },
    answers: {
      200: {
        description: 'The account.',
        content: json(userDetailsRecord, serviceAccountExample),
      },
    },
    errors: {
      unprocessable: ['"name" must have 1 to 100 characters.', unknownGroupFailure],
      unknown_field: '"kind" is not a known field.',
    },
  }),
  remove: operation({
    tag,
    summary: 'Delete a service account',
    description: 'Its API keys stop working everywhere within a second. What it made stays.',
    path,
    answers: {
      200: {
        description: 'It is deleted.',
        content: json(deleted('service_account.deleted'), {
          id: idExample,
          object: 'service_account.deleted',
          deleted: true,
        }),
      },
    },
    errors: { not_found: absent },
  }),
  createKey: operation({
    tag,
    summary: 'Create an API key for a service account',
    description: 'Called with a JWT. The answer is the only one that ever holds the key itself.',
    path,
    body: { content: json(createKeyBody, { name: 'import host' }) },
    answers: {
      200: {
        description: 'The key.',
        content: json(createdApiKey, { ...key, key: 'sk-svc-v1-…' }),
      },
    },
    errors: {
      jwt_required: 'API keys are made with a token, not with an API key.',
      not_found: absent,
      unprocessable: [
        '"name" must have 1 to 100 characters.',
        {
          code: 'too_many_api_keys',
          message: 'This service account has 100 API keys, which is the limit; delete one first.',
        },
      ],
    },
  }),
  listKeys: operation({
    tag,
    summary: 'List the API keys of a service account',
    description: 'Newest first. Revoked keys are gone, expired ones are there.',
    path,
    query: pageQuery,
    answers: {
      200: {
        description: 'A page of keys.',
        content: json(listOf(apiKeyRecord), listExample({ ...key, last_used_at: null })),
      },
    },
    errors: {
      unprocessable: '"limit" must be a whole number from 1 to 100.',
      not_found: absent,
    },
  }),
  revokeKey: operation({
    tag,
    summary: 'Revoke an API key of a service account',
    description: 'It stops working everywhere within a second.',
    path: { ...path, key_id: 'The id of the key.' },
    answers: {
      200: {
        description: 'It is revoked.',
        content: json(deleted('api_key.deleted'), {
          id: keyIdExample,
          object: 'api_key.deleted',
          deleted: true,
        }),
      },
    },
    errors: {
      not_found: [absent, `This service account has no API key with the id "${keyIdExample}".`],
    },
  }),
}
