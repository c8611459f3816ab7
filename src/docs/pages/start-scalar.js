const place = document.getElementById('reference')

globalThis.openDocument(place).then((content) => {
  globalThis.Scalar.createApiReference(place, {
    content,
    // The page calls this host itself, and knows no other one.
    externalUrls: { dashboardUrl: '', registryUrl: '', proxyUrl: '', apiBaseUrl: '' },
    authentication: { preferredSecurityScheme: 'apiKey' },
    modelsSectionLabel: 'Schemas',
    agent: { disabled: true },
    mcp: { disabled: true },
    hideClientButton: true,
    showDeveloperTools: 'never',
    persistAuth: false,
    telemetry: false,
    withDefaultFonts: false,
  })
})
