{{/* KEDA: a consumer is scaled by the depth of its queue, a relay by the lag of its lane. */}}
{{- define "baton.scaled" -}}
{{- $root := .root }}
{{- $values := .values }}
{{- $keda := $values.autoscaling.keda }}
{{- $name := printf "%s-%s" (include "baton.fullname" $root) .component }}
{{- if .spec.queue }}
---
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  {{- include "baton.metadata" . | nindent 2 }}
spec:
  {{- if or $values.aws.existingSecret $values.aws.accessKeyId }}
  {{- $secret := default $name $values.aws.existingSecret }}
  secretTargetRef:
    - {parameter: awsAccessKeyID, name: {{ $secret }}, key: AWS_ACCESS_KEY_ID}
    - {parameter: awsSecretAccessKey, name: {{ $secret }}, key: AWS_SECRET_ACCESS_KEY}
  {{- else }}
  podIdentity: {provider: aws, identityOwner: workload}
  {{- end }}
{{- end }}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  {{- include "baton.metadata" . | nindent 2 }}
spec:
  scaleTargetRef: {name: {{ $name }}}
  minReplicaCount: {{ $values.autoscaling.minReplicas }}
  maxReplicaCount: {{ $values.autoscaling.maxReplicas }}
  pollingInterval: {{ $keda.pollingInterval }}
  cooldownPeriod: {{ $keda.cooldownPeriod }}
  triggers:
    {{- if .spec.queue }}
    - type: aws-sqs-queue
      authenticationRef: {name: {{ $name }}}
      metadata:
        queueURL: {{ index $root.Values.queues .spec.queue | quote }}
        queueLength: {{ $keda.queueLength | quote }}
        awsRegion: {{ required "aws.region: KEDA asks SQS in a region, name it" $root.Values.aws.region | quote }}
        {{- with $root.Values.aws.endpoints.sqs }}
        awsEndpoint: {{ . | quote }}
        {{- end }}
    {{- else }}
    - type: prometheus
      metadata:
        serverAddress: {{ required "metrics.prometheus: KEDA asks Prometheus for the relays' lag, name it" $root.Values.metrics.prometheus | quote }}
        query: max(pramaan_document_ingest_relay_lag_seconds{namespace="{{ $root.Release.Namespace }}",lane="{{ .spec.lane }}"})
        threshold: {{ $keda.lagSeconds | quote }}
    {{- end }}
{{- end }}
