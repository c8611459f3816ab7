/** What an application may expect of this gateway, for a program that asks and for people. */
export const protocolText = `# Gateway protocol

The base URL is \`{origin}/compat\`. Unknown fields, parameters and headers are ignored.

| Endpoint | Credential | |
|---|---|---|
| \`GET {base}/.well-known/oauth-authorization-server\` | none | RFC 8414 metadata with the endpoints of the sign-in |
| \`POST {device_authorization_endpoint}\` | none | RFC 8628, 3.1 |
| \`POST {token_endpoint}\` | none | RFC 8628, 3.4, and \`grant_type=refresh_token\` (RFC 6749, 6): each response has a new \`refresh_token\`, unless the operator issues none. 401 \`invalid_grant\`: sign in again |
| \`POST {revocation_endpoint}\` | none | RFC 7009 |
| \`POST {base}/v1/messages\`, \`/v1/messages/count_tokens\` | bearer | the Messages API |
| \`GET {base}/v1/models\` | bearer | the models that the user may call |
| \`GET {base}/managed/settings\` | bearer | \`{"uuid", "checksum", "settings"}\` with \`ETag\`; 404: no policy |
| \`POST {base}/v1/metrics\`, \`/v1/logs\`, \`/v1/traces\` | bearer | OTLP over HTTP, protobuf or JSON |

A model that the user may not call is unknown: 404 \`not_found_error\`. \`safeguards\` reach upstreams of the Messages
protocol; with any other upstream they are 400 \`invalid_request_error\`. Errors have the envelope of the Messages API, those
of the sign-in the one of OAuth.
`
