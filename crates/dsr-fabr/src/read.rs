//! The values of an AVP in a request.

use diameter_proto::{Avps, Kind, Tag, known};
use dsr_app::Request;
use smallvec::SmallVec;

use crate::address::Value;
use crate::config::Avp;

/// Values of one AVP that are read: a request has one, or a few Subscription-Ids of one type.
const MOST_VALUES: usize = 8;

pub(crate) type Values<'m> = SmallVec<[Value<'m>; 2]>;

/// What a request has of an AVP, in its order. A group that is framed wrong has nothing.
pub(crate) fn values<'m>(avp: Avp, request: &Request<'m>) -> Values<'m> {
    let routing = request.view.routing;
    let text = |value: Option<&'m [u8]>| value.map(Value::Text).into_iter().collect();
    let tbcd = |value: Option<&'m [u8]>| value.map(Value::Tbcd).into_iter().collect();
    let identifier = || top(request, known::USER_IDENTIFIER);
    match avp {
        Avp::UserName => text(routing.user_name),
        Avp::SubscriptionIdE164 => subscriptions(request, 0),
        Avp::SubscriptionIdImsi => subscriptions(request, 1),
        Avp::SubscriptionIdSipUri => subscriptions(request, 2),
        Avp::SubscriptionIdNai => subscriptions(request, 3),
        Avp::SubscriptionIdPrivate => subscriptions(request, 4),
        Avp::Msisdn => tbcd(routing.msisdn),
        Avp::PublicIdentity => text(routing.public_identity),
        Avp::UserIdentityMsisdn => tbcd(within(routing.user_identity, known::MSISDN)),
        Avp::UserIdentityPublicIdentity => text(within(routing.user_identity, known::PUBLIC_IDENTITY)),
        Avp::UserIdentityExternalIdentifier => {
            text(within(routing.user_identity, known::EXTERNAL_IDENTIFIER))
        }
        Avp::UserIdentifierUserName => text(within(identifier(), known::USER_NAME)),
        Avp::UserIdentifierMsisdn => tbcd(within(identifier(), known::MSISDN)),
        Avp::UserIdentifierExternalIdentifier => text(within(identifier(), known::EXTERNAL_IDENTIFIER)),
        Avp::ExternalIdentifier => text(top(request, known::EXTERNAL_IDENTIFIER)),
    }
}

/// The data of an AVP at the top level.
fn top<'m, K: Kind>(request: &Request<'m>, tag: Tag<K>) -> Option<&'m [u8]> {
    let found = request.message.avps().find(tag).ok().flatten();
    found.map(|avp| avp.data)
}

fn within<K: Kind>(group: Option<&[u8]>, tag: Tag<K>) -> Option<&[u8]> {
    let found = Avps::new(group?).find(tag).ok().flatten();
    found.map(|avp| avp.data)
}

/// Subscription-Ids of a type (RFC 8506 §8.47): at the top level, else within Service-Information.
fn subscriptions<'m>(request: &Request<'m>, kind: i32) -> Values<'m> {
    let of_kind = |ids: &mut dyn Iterator<Item = (i32, &'m str)>| -> Values<'m> {
        ids.filter(|(of, _)| *of == kind)
            .map(|(_, data)| Value::Text(data.as_bytes()))
            .take(MOST_VALUES)
            .collect()
    };
    let found = of_kind(&mut request.view.routing.subscription_ids());
    if !found.is_empty() {
        return found;
    }
    let Some(service) = top(request, known::SERVICE_INFORMATION) else {
        return found;
    };
    let ids = Avps::new(service).map_while(Result::ok);
    let ids = ids.filter(|avp| avp.is(known::SUBSCRIPTION_ID));
    let mut ids = ids.filter_map(|avp| {
        let kind = avp.group().get(known::SUBSCRIPTION_ID_TYPE).ok()??;
        let data = avp.group().get(known::SUBSCRIPTION_ID_DATA).ok()??;
        Some((kind, data))
    });
    of_kind(&mut ids)
}
