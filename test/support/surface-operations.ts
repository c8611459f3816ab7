import { messageEndpoints } from '#surfaces/messages/endpoints.ts'
import { compatModelEndpoints } from '#surfaces/messages/model-endpoints.ts'
import { conversationEndpoints } from '#surfaces/responses/conversation-endpoints.ts'
import { responseEndpoints } from '#surfaces/responses/endpoints.ts'
import { storedResponseEndpoints } from '#surfaces/responses/stored-endpoints.ts'
import { responsesSocket } from '#surfaces/responses/websocket.ts'
import { operationsOf } from './endpoints.ts'

/** The OpenAPI operations of both model surfaces. */
export const surfaceOperations = operationsOf((deps) => [
  ...responseEndpoints(deps),
  ...storedResponseEndpoints(deps),
  responsesSocket(deps),
  ...conversationEndpoints(deps),
  ...messageEndpoints(deps),
  ...compatModelEndpoints(deps),
])
