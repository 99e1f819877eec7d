{{- define "signalbox.name" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "signalbox.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- define "signalbox.labels" -}}
{{ include "signalbox.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Ports of a function by name. */}}
{{- define "signalbox.ports" -}}
{{- $ports := dict
  "nrf" (dict "sbi" 8010 "admin" 9010)
  "scp" (dict "sbi" 8020 "admin" 9020)
  "bsf" (dict "sbi" 8030 "admin" 9030)
  "pcf" (dict "sbi" 8040 "diameter" 3840 "admin" 9040)
  "dsr" (dict "diameter" 3868 "admin" 9050)
  "scef" (dict "sbi" 8090 "diameter" 3890 "admin" 9090)
  "stp" (dict "m3ua-sctp" 2905 "m3ua-tcp" 2906 "admin" 9070)
  "enum" (dict "dns" 5300 "dns-udp" 5300 "admin" 9080)
  "sds" (dict "sbi" 8095 "admin" 9095)
  "dp" (dict "queries" 3800 "admin" 9100) -}}
{{- get $ports . | toYaml -}}
{{- end -}}

{{/* The transport of a port, by its name. */}}
{{- define "signalbox.protocol" -}}
{{- if hasSuffix "-udp" . -}}UDP{{- else if hasSuffix "-sctp" . -}}SCTP{{- else -}}TCP{{- end -}}
{{- end -}}

{{/* Ports of a Service. DNS has the one that clients know; below 1024 a pod may not listen. */}}
{{- define "signalbox.servicePorts" -}}
{{- range $port, $number := include "signalbox.ports" . | fromYaml }}
- {name: {{ $port }}, port: {{ ternary 53 $number (hasPrefix "dns" $port) }}, targetPort: {{ $port }}, protocol: {{ include "signalbox.protocol" $port }}}
{{- end -}}
{{- end -}}

{{/* Whether a function keeps state: it is a StatefulSet. */}}
{{- define "signalbox.hasState" -}}
{{- if has . (list "nrf" "bsf" "pcf" "scef" "sds" "dp" "enum") -}}yes{{- end -}}
{{- end -}}

{{/* Whether the state of a function is in files of its own. */}}
{{- define "signalbox.isEmbedded" -}}
{{- $store := default dict .config.store -}}
{{- if and (has .name (list "nrf" "bsf" "pcf" "scef" "sds")) (eq (default "embedded" $store.engine) "embedded") -}}yes{{- end -}}
{{- end -}}

{{/* Whether each pod has a volume: for such a store, for the records of an SDS, and for what DP and ENUM server have taken over. */}}
{{- define "signalbox.hasVolume" -}}
{{- if or (has .name (list "sds" "dp" "enum")) (include "signalbox.isEmbedded" .) -}}yes{{- end -}}
{{- end -}}

{{- define "signalbox.host" -}}
{{ include "signalbox.name" .root }}-{{ .name }}.{{ .root.Release.Namespace }}.svc
{{- end -}}

{{- define "signalbox.apiRoot" -}}
{{- $ports := include "signalbox.ports" .name | fromYaml -}}
{{ ternary "https" "http" .root.Values.tls.enabled }}://{{ include "signalbox.host" . }}:{{ $ports.sbi }}
{{- end -}}

{{/* What the chart sets of a function; values of the user go over it. */}}
{{- define "signalbox.config" -}}
{{- $ports := include "signalbox.ports" .name | fromYaml -}}
{{- $config := dict "admin" (printf "${POD_IP}:%v" $ports.admin) -}}
{{- if $ports.sbi -}}
{{- $_ := set $config "listen" (list (printf "${POD_IP}:%v" $ports.sbi)) -}}
{{- if ne .name "sds" -}}{{- $_ := set $config "apiRoot" (include "signalbox.apiRoot" .) -}}{{- end -}}
{{- end -}}
{{- if and .root.Values.tls.enabled (or $ports.sbi (eq .name "dp")) -}}
{{- $folder := "/etc/signalbox/tls" -}}
{{- $files := dict "certificate" (printf "%s/tls.crt" $folder) "key" (printf "%s/tls.key" $folder) "authorities" (printf "%s/ca.crt" $folder) -}}
{{- $_ := set $config "tls" $files -}}
{{- $_ := set $config "clientTls" (deepCopy $files) -}}
{{- end -}}
{{- $hasNrf := .root.Values.functions.nrf.enabled -}}
{{- $nrf := list (include "signalbox.apiRoot" (dict "root" .root "name" "nrf")) -}}
{{- if and $hasNrf (has .name (list "bsf" "pcf")) -}}
{{- $_ := set $config "nrf" (dict "apiRoots" $nrf) -}}
{{- end -}}
{{- if and $hasNrf (has .name (list "sds" "dp")) -}}
{{- $_ := set $config "nrfs" $nrf -}}
{{- end -}}
{{- if eq .name "scef" -}}
{{- $_ := set $config "diameter" (dict "listen" (list (printf "${POD_IP}:%v" $ports.diameter))) -}}
{{- end -}}
{{- if eq .name "stp" -}}
{{- $_ := set $config "listen" (list (printf "${POD_IP}:%v" (get $ports "m3ua-tcp"))) -}}
{{- end -}}
{{- if eq .name "enum" -}}
{{- $_ := set $config "listen" (list (printf "${POD_IP}:%v" $ports.dns)) -}}
{{- $_ := set $config "directory" "run/enum" -}}
{{- end -}}
{{- if eq .name "dp" -}}
{{- $_ := set $config "listen" (list (printf "${POD_IP}:%v" $ports.queries)) -}}
{{- if .root.Values.functions.sds.enabled -}}
{{- $_ := set $config "directory" "run/dp" -}}
{{- $_ := set $config "sds" (dict "addresses" (list (include "signalbox.apiRoot" (dict "root" .root "name" "sds"))) "name" "${POD_NAME}") -}}
{{- end -}}
{{- end -}}
{{- if eq .name "scp" -}}
{{- $host := include "signalbox.host" . -}}
{{- $short := printf "%s-scp" (include "signalbox.name" .root) -}}
{{- $_ := set $config "fqdn" $host -}}
{{- $_ := set $config "names" (list $short (printf "%s.%s" $short .root.Release.Namespace) (printf "%s.cluster.local" $host)) -}}
{{- if $hasNrf -}}{{- $_ := set $config "nrf" (dict "roots" $nrf) -}}{{- end -}}
{{- end -}}
{{- if eq .name "pcf" -}}
{{- $_ := set $config "diameter" (dict "enabled" false) -}}
{{- if $hasNrf -}}{{- $_ := set $config "bsf" (dict "discover" true) -}}{{- end -}}
{{- end -}}
{{- $own := mustMergeOverwrite $config (deepCopy .function.config) -}}
{{- dict "log" .root.Values.logs .name $own | toYaml -}}
{{- end -}}
