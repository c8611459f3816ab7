const place = document.getElementById('reference')

globalThis.openDocument(place).then((spec) => {
  globalThis.SwaggerUIBundle({
    spec,
    domNode: place,
    deepLinking: true,
    displayRequestDuration: true,
    docExpansion: 'none',
    filter: true,
    persistAuthorization: false,
    tryItOutEnabled: true,
    validatorUrl: null,
  })
})
