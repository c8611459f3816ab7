export type OidcClient = {
  /** Where the browser logs out of the identity provider. */
  logoutUrl(session: { id: string; idToken: string | null }, origin: string): Promise<string | null>
}
