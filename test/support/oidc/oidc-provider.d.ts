/** The part of `oidc-provider` that the tests use; the package has no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  type Listener = (request: IncomingMessage, response: ServerResponse) => void
  type Session = { readonly accountId: string }
  type Context = {
    readonly oidc: {
      readonly client: { readonly clientId: string }
      readonly session: Session
      readonly params: Record<string, unknown>
    }
  }

  export class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>)
    readonly Grant: new (of: {
      clientId: string
      accountId: string
    }) => {
      addOIDCScope(scope: string): void
      save(): Promise<string>
    }
    callback(): Listener
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: Record<string, unknown>,
    ): Promise<void>
  }
}
