import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { deletedResponse, listOf, listPage, renderPage } from '#api/shapes.ts'
import {
  deliveryObject,
  endpointChange,
  endpointObject,
  endpointWithSecret,
  newEndpoint,
  readEndpointChange,
  readNewEndpoint,
  readRotation,
  readTest,
  renderDelivery,
  renderEndpoint,
  rotation,
  testRequest,
} from './schema.ts'
import { endpointNotFound, organizationRight, type Webhooks } from './service.ts'
import { eventTypes } from './webhooks.ts'

/** Webhook endpoints and their deliveries, with the paths of OpenAI's packages. */
export function webhookEndpoints({ webhooks }: { webhooks: Webhooks }): Endpoint[] {
  return [
    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/webhook_endpoints',
      summary: 'Create a webhook endpoint',
      description: `Events of ended batches and background responses are sent to its URL, signed as Standard Webhooks have it. The
secret is shown once.`,
      body: jsonBody(newEndpoint, { example: exampleNew, read: readNewEndpoint }),
      responses: { 200: withSecretResponse('The endpoint with its secret.') },
      errors: {
        invalid_request: [
          refusedUrl,
          {
            code: 'too_many_webhook_endpoints',
            message: 'There are 20 endpoints, which is the limit; delete one first.',
          },
        ],
        permission_denied: organizationRight,
      },
      async handle({ body, context }) {
        const { endpoint, secret } = await webhooks.create(context, body)
        return { ...renderEndpoint(endpoint), signing_secret: secret }
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/webhook_endpoints',
      summary: 'List your webhook endpoints',
      description: 'Newest first; those of the organisation with the permission can_edit_config.',
      query: pageQuery,
      responses: {
        200: {
          description: 'A page of endpoints.',
          content: json(listOf(endpointObject), listPage([exampleEndpoint], false)),
        },
      },
      errors: cursorErrors,
      handle: async ({ query, context }) =>
        renderPage(await webhooks.list(context, query), renderEndpoint),
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/webhook_endpoints/:id',
      summary: 'Retrieve a webhook endpoint',
      params: idParam,
      responses: { 200: endpointResponse('The endpoint.') },
      errors: { not_found: notFound },
      handle: async ({ params, context }) =>
        renderEndpoint(await webhooks.find(context, params.id)),
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/webhook_endpoints/:id',
      summary: 'Update a webhook endpoint',
      params: idParam,
      body: jsonBody(endpointChange, {
        example: { event_types: ['batch.completed'] },
        isOptional: true,
        read: readEndpointChange,
      }),
      responses: { 200: endpointResponse('The updated endpoint.') },
      errors: { not_found: notFound, invalid_request: refusedUrl },
      handle: async ({ params, body, context }) =>
        renderEndpoint(await webhooks.update(context, params.id, body ?? {})),
    }),

    endpoint({
      ...common,
      method: 'DELETE',
      path: '/v1/webhook_endpoints/:id',
      summary: 'Delete a webhook endpoint',
      description: 'With its deliveries; pending ones are not sent.',
      params: idParam,
      responses: {
        200: deletedResponse('The endpoint is deleted.', 'webhook_endpoint.deleted', exampleId),
      },
      errors: { not_found: notFound },
      async handle({ params: { id }, context }) {
        await webhooks.remove(context, id)
        return { id, object: 'webhook_endpoint.deleted', deleted: true }
      },
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/webhook_endpoints/:id/rotate_secret',
      summary: 'Replace the secret of a webhook endpoint',
      params: idParam,
      body: jsonBody(rotation, {
        example: { keep_old_secret_active_for_24_hours: true },
        isOptional: true,
        read: readRotation,
      }),
      responses: { 200: withSecretResponse('The endpoint with its new secret.') },
      errors: { not_found: notFound, invalid_request: invalidRotation },
      async handle({ params, body, context }) {
        const { endpoint, secret } = await webhooks.rotate(context, params.id, body ?? false)
        return { ...renderEndpoint(endpoint), signing_secret: secret }
      },
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/webhook_endpoints/:id/test',
      summary: 'Send a test event',
      description: 'A sample of this type is sent once, now.',
      params: idParam,
      body: jsonBody(testRequest, { example: { event_type: 'batch.completed' }, read: readTest }),
      responses: {
        200: {
          description: 'The status of the receiver.',
          content: json(testResult, exampleTestResult),
        },
      },
      errors: {
        not_found: notFound,
        invalid_request: refusedUrl,
        too_many_streams: 'Too many test events are being sent.',
        upstream_unreachable: 'The server could not be reached.',
        upstream_total_timeout: 'The server took longer than 15 s.',
        upstream_invalid_answer: 'The server responded with a redirect, which is not followed.',
        invalid_encrypted_content: 'The secret is lost.',
      },
      async handle({ params: { id }, body, context }) {
        return {
          object: 'webhook_endpoint.test',
          webhook_endpoint_id: id,
          event_type: body,
          status_code: await webhooks.test(context, id, body),
          success: true,
        }
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/webhook_endpoints/:id/deliveries',
      summary: 'List the deliveries of a webhook endpoint',
      description: 'Newest first, with their attempts.',
      params: idParam,
      query: pageQuery,
      responses: {
        200: {
          description: 'A page of deliveries.',
          content: json(listOf(deliveryObject), listPage([exampleDelivery], false)),
        },
      },
      errors: { ...cursorErrors, not_found: notFound },
      handle: async ({ params, query, context }) =>
        renderPage(await webhooks.listDeliveries(context, params.id, query), renderDelivery),
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/webhook_endpoints/:id/deliveries/:delivery_id/retry',
      summary: 'Send a delivery again',
      description: 'A delivery that has ended is pending again; one that is pending stays so.',
      params: { ...idParam, delivery_id: 'The id of the delivery.' },
      responses: {
        200: { description: 'The delivery.', content: json(deliveryObject, exampleDelivery) },
      },
      errors: {
        not_found: [notFound, `There is no delivery with the id "${exampleDelivery.id}".`],
      },
      handle: async ({ params, context }) =>
        renderDelivery(await webhooks.retryDelivery(context, params.id, params.delivery_id)),
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/webhook_event_types',
      summary: 'List the types of webhook events',
      responses: {
        200: {
          description: 'The types.',
          content: json(
            Type.Object({ object: Type.Literal('list'), data: Type.Array(Type.String()) }),
            { object: 'list', data: eventTypes },
          ),
        },
      },
      handle: () => ({ object: 'list', data: eventTypes }),
    }),
  ]
}

const common = { permission: 'can_access_api', tag: 'Webhooks' } as const
const idParam = { id: 'The id of the endpoint.' }
const exampleId = 'whe_3w6bzphnjs2m7q4k9x1c8v5r0t'
const notFound = endpointNotFound(exampleId).message
const refusedUrl = 'The URL leads to an address that is not public.'
const invalidRotation = 'keep_old_secret_active_for_24_hours must be a boolean.'

const pageQuery = Type.Object({
  limit: Type.Integer({ description: 'Items per page.', minimum: 1, maximum: 100, default: 20 }),
  after: Type.Optional(
    Type.String({ description: 'The id of the last item of the previous page.', maxLength: 128 }),
  ),
})
const cursorErrors = {
  invalid_request: 'after must be the id of one of the endpoints of this list.',
  unprocessable: '"limit" must be a whole number from 1 to 100.',
}

const exampleNew = {
  name: 'Orders',
  url: 'https://hooks.example.com/sluice',
  event_types: ['batch.completed', 'batch.failed'],
}
const createdAt = 1_795_253_400
const exampleEndpoint = {
  ...exampleNew,
  id: exampleId,
  object: 'webhook_endpoint',
  scope: 'user',
  signing_secret_hint: 'whsec_…x7Qk',
  created_at: createdAt,
  updated_at: createdAt,
} as const

const exampleDelivery = {
  id: 'wh_3w6bzphnjs2m7q4k9x1c8v5r0t',
  object: 'webhook_delivery',
  event_id: 'evt_3w6bzphnjs2m7q4k9x1c8v5r0t',
  event_type: 'batch.completed',
  status: 'delivered',
  test: false,
  attempts: 1,
  attempt_log: [{ at: '2026-11-21T09:30:01.000Z', status_code: 200, error: null, duration_ms: 41 }],
  created_at: createdAt,
  next_attempt_at: null,
  ended_at: createdAt + 1,
} as const

const testResult = Type.Object(
  {
    object: Type.Literal('webhook_endpoint.test'),
    webhook_endpoint_id: Type.String(),
    event_type: Type.String(),
    status_code: Type.Integer({ description: 'The status that the receiver returned.' }),
    success: Type.Literal(true),
  },
  { $id: 'WebhookTestResult' },
)
const exampleTestResult = {
  object: 'webhook_endpoint.test',
  webhook_endpoint_id: exampleId,
  event_type: 'batch.completed',
  status_code: 200,
  success: true,
}

function endpointResponse(description: string) {
  return { description, content: json(endpointObject, exampleEndpoint) }
}

function withSecretResponse(description: string) {
  return {
    description,
    content: json(endpointWithSecret, {
      ...exampleEndpoint,
      signing_secret: 'whsec_b3BlbiBzZXNhbWUsIHNhaWQgdGhlIHNsdWljZSBnYXRl',
    }),
  }
}
